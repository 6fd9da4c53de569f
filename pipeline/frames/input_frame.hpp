#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

extern "C" {
#include <libavutil/rational.h>
}

#include "kernels/color_spec.hpp"
#include "kernels/image_view.hpp"
#include "pipeline/av/buffer_ref.hpp"

namespace framelane {

/// Where a frame's pixels are. kDevice: in the memory of the GPU that the feed's stage runs on; no
/// other stage and no encoder can read them.
enum class FrameMemory { kHost, kDevice };

/// One decoded picture: its planes, their colour, its time, and the owner of their memory. Not an
/// AVFrame, so that frames can also come from other sources. Moving it copies no pixels.
struct InputFrame {
  ConstImageView image;  ///< in the memory of `buffer`
  FrameMemory memory = FrameMemory::kHost;
  ColorSpec color;
  /// Owns the memory. For a frame on a device, releasing it gives the surface back.
  BufferRef buffer;
  /// Not null: the frame is lent by another process, which has only a few and waits for them, so
  /// that what may be held for long has to be copied. It becomes true when the pixels may no longer
  /// be what that process sent. Valid while `buffer` is held.
  const std::atomic<bool>* spoiled = nullptr;
  std::int64_t pts = 0;  ///< on the feed's timeline, in SourceInfo::time_base; increases strictly
  std::int64_t duration = 0;  ///< 0: unknown
  AVRational sample_aspect_ratio{0, 1};
  bool interlaced = false;
  bool top_field_first = false;
  std::chrono::steady_clock::time_point decoded_at;  ///< raw video: read
};

/// Throws FeedError(kMemory) if the frame is spoiled.
void require_unspoiled(const InputFrame& frame);

}  // namespace framelane
