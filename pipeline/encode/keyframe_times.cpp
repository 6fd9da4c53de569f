#include "pipeline/encode/keyframe_times.hpp"

extern "C" {
#include <libavutil/mathematics.h>
}

#include <utility>

namespace framelane {

bool KeyframeTimes::due(std::int64_t pts, AVRational time_base) {
  if (!gop_) return false;
  const AVRational gop{static_cast<int>(gop_->count()), 1'000'000};
  const std::int64_t group = av_rescale_q_rnd(pts, time_base, gop, AV_ROUND_DOWN);
  return std::exchange(group_, group) != group;
}

}  // namespace framelane
