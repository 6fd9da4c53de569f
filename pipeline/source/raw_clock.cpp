#include "pipeline/source/raw_clock.hpp"

extern "C" {
#include <libavutil/avutil.h>
#include <libavutil/common.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>

#include "pipeline/av/av_rational.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

AVRational checked_rate(const RawVideoOptions& raw) {
  if (raw.rate.num > 0 && raw.rate.den > 0) return to_av(raw.rate);
  throw FeedError(FeedFault::kConfiguration, "input.rate must be positive");
}

}  // namespace

RawClock::RawClock(const RawVideoOptions& raw, std::optional<std::chrono::microseconds> duration,
                   Timeline& timeline)
    : reads_clock_(raw.timestamps != RawVideoOptions::Timestamps::kRate),
      frame_rate_(checked_rate(raw)),
      time_base_(reads_clock_ ? AV_TIME_BASE_Q : av_inv_q(frame_rate_)),
      duration_(duration),
      timeline_(timeline),
      packet_(make_packet()) {}

void RawClock::begin_segment() {
  timeline_.begin_segment();
  timeline_.set_stream(StreamKind::kVideo,
                       {.time_base = time_base_, .frame_rate = frame_rate_, .ours = reads_clock_});
  frames_ = 0;
}

/// The clock in microseconds; later than the last reading.
std::int64_t RawClock::reading(Clock::time_point time) {
  using Microseconds = std::chrono::duration<std::int64_t, std::micro>;
  const auto us = std::chrono::duration_cast<Microseconds>(time.time_since_epoch()).count();
  last_ = std::max(us, last_ == INT64_MIN ? us : last_ + 1);
  return last_;
}

std::optional<RawClock::Stamp> RawClock::stamp(Clock::time_point taken, Clock::time_point arrived) {
  const auto place = [&](std::int64_t time, std::int64_t duration) {
    packet_->pts = packet_->dts = time;
    packet_->duration = duration;
    return timeline_.stamp(StreamKind::kVideo, *packet_, arrived);
  };
  if (!reads_clock_) {
    place(frames_, 1);
  } else if (!place(reading(taken), 0)) {
    // It lies before what was delivered before the source was opened again: it is no true time.
    place(reading(arrived), 0);
  }
  ++frames_;
  const std::int64_t pts_us = av_rescale_q(packet_->pts, time_base_, AV_TIME_BASE_Q);
  if (duration_ && !end_us_) end_us_ = av_sat_add64(pts_us, duration_->count());
  if (end_us_ && pts_us >= *end_us_) return std::nullopt;
  return Stamp{.pts = packet_->pts, .duration = packet_->duration};
}

}  // namespace framelane
