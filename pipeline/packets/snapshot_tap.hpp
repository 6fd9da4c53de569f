#pragma once

#include <array>
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

/// Where a run of a feed leaves a picture for whoever asks to see it. As long as nobody asks, it
/// keeps references to the newest keyframes, and no frame. What was made before another mask, or by
/// a source that has been opened again since, is not shown. Times are those of the feed's line, in
/// microseconds.
class SnapshotTap {
 public:
  /// A packet from which one picture can be decoded.
  struct Keyframe {
    PacketPtr packet;
    MediaFormatRef format;
  };

  // For the feed's threads. They never wait.

  /// True while somebody waits for a frame.
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  /// Leaves a reference to a frame in host memory for those who wait.
  void give(const AVFrame& frame, std::int64_t time_us);
  /// `copied`: from the source, where nothing is masked.
  void keep(const AVPacket& keyframe, const MediaFormatRef& format, bool copied,
            std::int64_t time_us);

  /// Frames will have other masks: none is shown before masks_begin() with the number that this
  /// returns. Any thread.
  std::uint64_t expect_masks();
  /// These masks are on the frames from this time on.
  void masks_begin(std::uint64_t masks, std::int64_t time_us);
  /// The source was opened, and its pictures begin here.
  void source_begins(std::int64_t time_us);
  /// The run is over: nothing is shown any more. Any thread.
  void close();

  // For others. Any thread.

  /// The next frame that an encode gets; null if none comes in time. Hold it for a short time only:
  /// it is one of the feed's buffers.
  std::shared_ptr<const AVFrame> wait_frame(std::chrono::milliseconds timeout);
  /// The newest; its `packet` is null if there is none. `masked`: one from an encode, since what is
  /// copied has no masks.
  Keyframe keyframe(bool masked) const;
  /// True if so much time has gone by since this last returned true.
  bool may_decode(std::chrono::steady_clock::time_point now, std::chrono::milliseconds pause);

 private:
  struct Kept : Keyframe {
    std::uint64_t count = 0;  // rises from one to the next
  };

  bool shows(std::int64_t time_us) const;  // requires mutex_
  void forget(std::int64_t from_us);       // likewise

  std::atomic<bool> wanted_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable given_;
  int waiting_ = 0;
  std::uint64_t count_ = 0;               // frames that were given
  std::shared_ptr<const AVFrame> frame_;  // the last; null while nobody waits
  std::array<Kept, 2> kept_;              // of an encode, copied
  std::uint64_t kept_count_ = 0;
  std::int64_t from_us_ = INT64_MIN;  // nothing before this is shown
  std::uint64_t masks_ = 0;           // on the frames
  std::uint64_t expected_masks_ = 0;
  bool closed_ = false;
  std::optional<std::chrono::steady_clock::time_point> decoded_at_;
};

}  // namespace framelane
