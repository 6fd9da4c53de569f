#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include <optional>
#include <string>

#include "kernels/scaling.hpp"
#include "pipeline/encode/picture_options.hpp"

namespace framelane {

/// What an encode makes of pictures of one size.
struct PictureChoice {
  std::optional<Scaling> scaling{};  ///< nothing: they stay as they are
  PictureSize size;
  AVRational sample_aspect_ratio{0, 1};  ///< 0/1: unknown
};

/// The choice for pictures of this size and shape of pixels. Nothing if there is none, with the
/// reason in `problem`: "crop 640x480+1600+0 lies outside the picture of 1920x1080".
std::optional<PictureChoice> choose_picture(const PictureOptions& options,
                                            const PictureSize& source,
                                            AVRational sample_aspect_ratio, std::string& problem);

}  // namespace framelane
