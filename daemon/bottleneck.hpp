#pragma once

#include <array>

#include "daemon/feed_view.hpp"
#include "pipeline/base/labels.hpp"

namespace framelane {

/// A step that was busy for at least this share of the last ten seconds counts as saturated.
inline constexpr double kSaturated = 0.85;

/// How busy each step of a feed was in the last ten seconds, 0 to 1. Indexed by Bottleneck. An
/// engine of a GPU that other feeds keep busy counts as this feed's step, as far as the feed had
/// frames on the GPU all the time: they waited for it.
using StepLoads = std::array<double, kBottleneckNames.size()>;
StepLoads step_loads(const FeedView& feed);

/// What limits the rate of a feed: the busiest step if one is saturated, otherwise the source. Of
/// equally busy steps it is the last one, because a full queue holds up the steps before it.
Bottleneck bottleneck(const StepLoads& loads);

}  // namespace framelane
