#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>

#include "kernels/overlay.hpp"
#include "pipeline/base/rational.hpp"
#include "pipeline/overlay/frame_overlays.hpp"
#include "pipeline/overlay/overlay_options.hpp"

namespace framelane {

/// FrameOverlays whose fonts and images may be on a file server that does not answer. They are made
/// on a thread of their own, and so is every text that is drawn, each time on another thread; the
/// caller waits for it, but not for ever. A thread that is late is abandoned, and counts as stuck
/// until it ends. One thread uses it.
class TimedOverlays {
 public:
  /// The frames that are drawn on, as FrameOverlays has them.
  struct Frames {
    PictureSize size;
    Rational sample_aspect_ratio;
    PixelFormat format;
    ColorSpec color;
  };

  /// Waits for `limit` and a second at most, here and in at(), and after `cancel` for a second.
  /// Throws what FrameOverlays throws; FeedError(kEncoder) if that takes longer, and at once as
  /// long as a thread of this process that had the same options is stuck; and FeedError(kMemory) if
  /// no thread starts.
  TimedOverlays(std::span<const OverlayOptions> options, const Frames& frames,
                std::chrono::milliseconds limit, std::stop_token cancel);

  /// See FrameOverlays::at(). Throws as the constructor does; from then on it may not be called.
  std::shared_ptr<const Overlays> at(std::chrono::system_clock::time_point time);

 private:
  struct Work;
  class LateWork;
  void run(std::function<void(Work&)> call);

  const std::chrono::milliseconds limit_;
  const std::stop_token cancel_;
  const std::shared_ptr<Work> work_;  // shared with its thread
};

}  // namespace framelane
