#include "pipeline/encode/rate_limit.hpp"

extern "C" {
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>

#include "pipeline/encode/keyframe_times.hpp"

namespace framelane {
namespace {

/// Times are rounded to time bases.
constexpr std::int64_t kRoundingUs = 1000;
/// Of a frame.
constexpr double kHalf = 0.5;

/// When the first frame at or after `boundary_us` comes, if frames go on coming at this distance.
std::int64_t first_frame_from(std::int64_t boundary_us, std::int64_t time_us,
                              std::int64_t distance_us) {
  const std::int64_t left_us = boundary_us - time_us - kRoundingUs;
  const std::int64_t frames = std::max<std::int64_t>(1, (left_us + distance_us - 1) / distance_us);
  return std::max(boundary_us, time_us + frames * distance_us);
}

}  // namespace

bool RateLimit::takes(std::int64_t pts, AVRational time_base, AVRational source_rate) {
  if (!rate_) return true;
  const std::int64_t time_us = av_rescale_q_rnd(pts, time_base, AV_TIME_BASE_Q, AV_ROUND_DOWN);
  const std::int64_t distance_us = time_us - previous_us_.value_or(time_us);
  previous_us_ = time_us;
  // Frames from half their distance before a multiple on are the nearest ones to it.
  const std::int64_t half_us = source_rate.num > 0 ? av_rescale(AV_TIME_BASE, source_rate.den,
                                                                std::int64_t{2} * source_rate.num)
                                                   : 0;
  if (gop_ && frames_in(gop_->count()) >= 1) {
    return takes_in_group(time_us, half_us, std::max<std::int64_t>(distance_us, 1));
  }
  std::int64_t nearest_us = time_us + half_us;
  if (gop_) nearest_us = group_at(time_us, *gop_) * gop_->count() + gop_->count() / 2;
  next_.multiple = multiple_at(nearest_us);
  return !last_ || last_->multiple != next_.multiple;
}

bool RateLimit::takes_in_group(std::int64_t time_us, std::int64_t half_us,
                               std::int64_t distance_us) {
  const std::int64_t group = group_at(time_us, *gop_);
  if (!last_ || last_->group != group) {
    next_ = {.group = group, .begin_us = time_us};
    // What a slow source lacks is not made up for.
    if (last_) next_.ahead = std::max(ahead(*last_, time_us), -kHalf);
    return true;
  }
  next_ = *last_;
  next_.multiple = multiple_at(time_us - last_->begin_us + half_us);
  if (next_.multiple == last_->multiple) return false;
  const std::int64_t keyframe_us =
      first_frame_from((group + 1) * gop_->count(), time_us, distance_us);
  return frames_in(keyframe_us - time_us) >= kHalf && ahead(next_, keyframe_us) <= kHalf;
}

/// How many frames more than the rate have come when the next group begins, if this is the last
/// frame before it.
double RateLimit::ahead(const Place& last, std::int64_t next_begin_us) const {
  return last.ahead + static_cast<double>(last.multiple + 1) -
         frames_in(next_begin_us - last.begin_us);
}

double RateLimit::frames_in(std::int64_t us) const {
  return static_cast<double>(us) * rate_->num / (static_cast<double>(rate_->den) * AV_TIME_BASE);
}

std::int64_t RateLimit::multiple_at(std::int64_t us) const {
  return av_rescale_rnd(us, rate_->num, std::int64_t{rate_->den} * AV_TIME_BASE, AV_ROUND_DOWN);
}

}  // namespace framelane
