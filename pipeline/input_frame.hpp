#pragma once

#include <chrono>
#include <cstdint>

extern "C" {
#include <libavutil/rational.h>
}

#include "kernels/color_spec.hpp"
#include "kernels/image_view.hpp"
#include "pipeline/av.hpp"

namespace framelane {

/// One decoded picture: planes, what they mean, when they are shown and what keeps them alive.
/// Not an AVFrame, so that frames can also come from elsewhere. Moving it moves no pixels.
struct InputFrame {
  ConstImageView image;  ///< points into `buffer`
  ColorSpec color;
  BufferRef buffer;
  std::int64_t pts = 0;  ///< on the feed's timeline, in SourceInfo::time_base; increases strictly
  std::int64_t duration = 0;  ///< 0: unknown
  AVRational sample_aspect_ratio{0, 1};
  bool interlaced = false;
  bool top_field_first = false;
  std::chrono::steady_clock::time_point decoded_at;
};

}  // namespace framelane
