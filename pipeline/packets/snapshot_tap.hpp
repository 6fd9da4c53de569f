#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/packets/media.hpp"

namespace framelane {

/// Where a feed leaves a picture for whoever asks to see it. As long as nobody asks, it keeps a
/// reference to the newest keyframe, and no frame.
class SnapshotTap {
 public:
  /// A packet from which one picture can be decoded.
  struct Keyframe {
    PacketPtr packet;
    MediaFormatRef format;
    bool copied = false;  ///< from the source, where nothing is masked
  };

  // For the feed's threads. They never wait.

  /// True while somebody waits for a frame.
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  /// Leaves a reference to a frame in host memory for those who wait.
  void give(const AVFrame& frame);
  void keep(const AVPacket& keyframe, const MediaFormatRef& format, bool copied);

  // For others. Any thread.

  /// The next frame that an encode gets; null if none comes in time. Hold it for a short time only:
  /// it is one of the feed's buffers.
  std::shared_ptr<const AVFrame> wait_frame(std::chrono::milliseconds timeout);
  /// The newest; its `packet` is null if there is none.
  Keyframe keyframe() const;
  /// True if so much time has gone by since this last returned true.
  bool may_decode(std::chrono::steady_clock::time_point now, std::chrono::milliseconds pause);

 private:
  std::atomic<bool> wanted_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable given_;
  int waiting_ = 0;
  std::uint64_t count_ = 0;               // frames that were given
  std::shared_ptr<const AVFrame> frame_;  // the last; null while nobody waits
  Keyframe keyframe_;
  std::optional<std::chrono::steady_clock::time_point> decoded_at_;
};

}  // namespace framelane
