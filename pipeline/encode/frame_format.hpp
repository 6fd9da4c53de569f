#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include <optional>

#include "kernels/color_spec.hpp"
#include "kernels/conversion.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/frames/input_frame.hpp"

namespace framelane {

/// What the frames of a source, or those that an encoder takes, look like. A source whose format
/// changes needs new encode plans.
struct FrameFormat {
  PixelFormat layout = PixelFormat::kI420;
  int width = 0;
  int height = 0;
  ColorSpec color;
  AVRational time_base{0, 1};
  AVRational frame_rate{0, 1};  ///< 0/1 when unknown
  AVRational sample_aspect_ratio{0, 1};
  FrameMemory memory = FrameMemory::kHost;

  /// Pixels of an unknown shape are equal to square ones. Leaves out frame_rate: it is estimated
  /// from a few frames and differs a little at each connection, which is no reason to open an
  /// encoder again.
  friend bool operator==(const FrameFormat& a, const FrameFormat& b);
};

/// The conversion from the source's frames to what the encoder takes. `scaling`: nothing if they
/// are as large.
Conversion conversion_between(const FrameFormat& source, const FrameFormat& target,
                              const std::optional<Scaling>& scaling = {});

}  // namespace framelane
