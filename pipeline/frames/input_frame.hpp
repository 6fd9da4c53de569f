#pragma once

#include <chrono>
#include <cstdint>

extern "C" {
#include <libavutil/rational.h>
}

#include "kernels/color_spec.hpp"
#include "kernels/image_view.hpp"
#include "pipeline/av/buffer_ref.hpp"

namespace framelane {

/// Where a frame's pixels are: kDevice is the memory of the GPU that the feed's stage runs on,
/// which no other stage and no encoder can read.
enum class FrameMemory { kHost, kDevice };

/// One decoded picture: planes, what they mean, when they are shown and what keeps them alive.
/// Not an AVFrame, so that frames can also come from elsewhere. Moving it moves no pixels.
struct InputFrame {
  ConstImageView image;  ///< kept by `buffer`
  FrameMemory memory = FrameMemory::kHost;
  ColorSpec color;
  BufferRef buffer;      ///< the memory itself or, of a frame on a device, what gives it back
  std::int64_t pts = 0;  ///< on the feed's timeline, in SourceInfo::time_base; increases strictly
  std::int64_t duration = 0;  ///< 0: unknown
  AVRational sample_aspect_ratio{0, 1};
  bool interlaced = false;
  bool top_field_first = false;
  std::chrono::steady_clock::time_point decoded_at;
};

}  // namespace framelane
