#include "pipeline/encode/keyframe_times.hpp"

extern "C" {
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
}

#include <utility>

namespace framelane {

std::int64_t group_at(std::int64_t time_us, std::chrono::microseconds gop) {
  return av_rescale_rnd(time_us, 1, gop.count(), AV_ROUND_DOWN);
}

void KeyframeTimes::set_gop(std::optional<std::chrono::microseconds> gop) {
  if (std::exchange(gop_, gop) != gop) group_.reset();
}

bool KeyframeTimes::due(std::int64_t pts, AVRational time_base) {
  if (!gop_) return false;
  const std::int64_t time_us = av_rescale_q_rnd(pts, time_base, AV_TIME_BASE_Q, AV_ROUND_DOWN);
  const std::int64_t group = group_at(time_us, *gop_);
  return std::exchange(group_, group) != group;
}

}  // namespace framelane
