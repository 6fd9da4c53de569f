#pragma once

extern "C" {
#include <libavcodec/packet.h>
#include <libavutil/rational.h>
}

#include <chrono>
#include <cstdint>
#include <optional>

#include "pipeline/av/av_ptr.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/source/timeline.hpp"

namespace framelane {

/// The times of raw frames, on the feed's timeline. With `rate`, frame n has the time n/rate; with
/// `arrival` and `producer`, that of the steady clock when it arrived or was taken, in
/// microseconds. In each case the timeline continues over loops and reopening. One thread.
class RawClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeline` outlives it. `duration`: what comes later than so much after the first frame is
  /// left out. Throws FeedError(kConfiguration) if the rate is not positive.
  RawClock(const RawVideoOptions& raw, std::optional<std::chrono::microseconds> duration,
           Timeline& timeline);

  AVRational time_base() const { return time_base_; }
  /// The source begins, or begins again: frames are counted from 0.
  void begin_segment();
  /// How many frames the segment has had.
  std::int64_t frames() const { return frames_; }

  struct Stamp {
    std::int64_t pts = 0;  // in time_base()
    std::int64_t duration = 0;
  };
  /// The time of the next frame. `taken`: by `arrival`, when it arrived. Nothing if it lies behind
  /// `duration`.
  std::optional<Stamp> stamp(Clock::time_point taken, Clock::time_point arrived);

 private:
  std::int64_t reading(Clock::time_point time);

  const bool reads_clock_;
  const AVRational frame_rate_;
  const AVRational time_base_;
  const std::optional<std::chrono::microseconds> duration_;
  Timeline& timeline_;
  const PacketPtr packet_;  // takes each timestamp through the timeline
  std::int64_t frames_ = 0;
  std::int64_t last_ = INT64_MIN;       // microseconds of the clock
  std::optional<std::int64_t> end_us_;  // where `duration` ends, on the timeline
};

}  // namespace framelane
