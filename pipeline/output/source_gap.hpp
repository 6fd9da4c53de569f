#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "pipeline/base/line_clock.hpp"
#include "pipeline/packets/interleaver.hpp"

namespace framelane {

/// Watches for one output whether its source is gone, or was since the output began what it writes.
/// A file that begins with pictures of the one before it (PacketFanout sends a group again) holds
/// the gap between the two; that does not end a second file. One thread.
class SourceGap {
 public:
  using Clock = LineClock::Clock;

  explicit SourceGap(const LineClock& clock) : clock_(clock) {}

  /// A new file begins.
  void begin(const MediaPacket& keyframe) {
    seen_ = false;
    start_us_ = packet_time_us(keyframe);
    repeats_ = start_us_ <= ended_at_us_;
  }
  /// The file ends, with this length, because the source is gone.
  void end(std::chrono::microseconds length) { ended_at_us_ = start_us_ + length.count(); }
  /// A picture has come, on the line so long after what was written last.
  void note(const MediaPacket& video, std::chrono::microseconds silence) {
    const bool ended_a_file = std::exchange(repeats_, packet_time_us(video) <= ended_at_us_);
    seen_ = seen_ || (!ended_a_file && clock_.splits(silence));
  }
  /// True if the source was gone since begin().
  bool seen() const { return seen_; }

  /// True if the source is gone, on the second look: after the process was stopped for a while, the
  /// source thread has yet to see what has come.
  bool gone(Clock::time_point now) {
    const auto gone_at = clock_.gone_at();
    if (!gone_at || *gone_at > now) return false;
    return std::exchange(gone_at_, gone_at) == gone_at;
  }

 private:
  const LineClock& clock_;
  bool seen_ = false;
  bool repeats_ = false;  // the last picture is not from behind ended_at_us_
  std::int64_t start_us_ = 0;
  std::int64_t ended_at_us_ = INT64_MIN;      // the last file that end() ended
  std::optional<Clock::time_point> gone_at_;  // at the last look
};

}  // namespace framelane
