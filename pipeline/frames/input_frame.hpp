#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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

/// A frame in the memory of another process, which may change it. Any thread.
class FrameLoan {
 public:
  /// Why the pixels may no longer be what that process sent; empty if they are. What was read
  /// before the call was good if this is empty.
  virtual std::string why_spoiled() const = 0;

 protected:
  ~FrameLoan() = default;
};

/// One decoded picture: its planes, their colour, its time, and the owner of their memory. Not an
/// AVFrame, so that frames can also come from other sources. Moving it copies no pixels.
struct InputFrame {
  ConstImageView image;  ///< in the memory of `buffer`
  FrameMemory memory = FrameMemory::kHost;
  ColorSpec color;
  /// Owns the memory. For a frame on a device, releasing it gives the surface back.
  BufferRef buffer;
  /// Not null: the frame is lent by another process, which has only a few and waits for them, so
  /// that what may be held for long has to be copied. Valid while `buffer` is held.
  const FrameLoan* loan = nullptr;
  std::int64_t pts = 0;  ///< on the feed's timeline, in SourceInfo::time_base; increases strictly
  std::int64_t duration = 0;  ///< 0: unknown
  std::int64_t time_us = 0;   ///< `pts` in microseconds, which names the frame in traces
  AVRational sample_aspect_ratio{0, 1};
  bool interlaced = false;
  bool top_field_first = false;
  std::chrono::steady_clock::time_point decoded_at;  ///< raw video: read
};

/// Throws FeedError(kMemory) if the frame is lent and spoiled.
void require_unspoiled(const InputFrame& frame);

}  // namespace framelane
