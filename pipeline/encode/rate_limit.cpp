#include "pipeline/encode/rate_limit.hpp"

extern "C" {
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
}

namespace framelane {

bool RateLimit::takes(std::int64_t pts, AVRational time_base, AVRational source_rate) {
  if (!rate_) return true;
  // Frames from half their distance before a multiple on are the nearest ones to it.
  const std::int64_t half = source_rate.num > 0 ? av_rescale(AV_TIME_BASE, source_rate.den,
                                                             std::int64_t{2} * source_rate.num)
                                                : 0;
  const std::int64_t time_us = av_rescale_q_rnd(pts, time_base, AV_TIME_BASE_Q, AV_ROUND_DOWN);
  const std::int64_t multiple = av_rescale_rnd(
      time_us + half, rate_->num, std::int64_t{rate_->den} * AV_TIME_BASE, AV_ROUND_DOWN);
  if (multiple == multiple_) return false;
  multiple_ = multiple;
  return true;
}

}  // namespace framelane
