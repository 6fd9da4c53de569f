#pragma once

#include <array>
#include <optional>

#include "daemon/supervisor.hpp"

namespace framelane {

/// From this share of the last ten seconds on, a step counts as saturated.
inline constexpr double kSaturated = 0.85;

/// How busy each step of a feed was, 0..1, by Bottleneck.
using StepLoads = std::array<double, kBottleneckNames.size()>;
StepLoads step_loads(const FeedView& feed);

/// What limits a feed's rate: the busiest step, when one is saturated, else the source. Of equally
/// busy ones the last, because a full queue holds up what comes before it.
Bottleneck bottleneck(const StepLoads& loads);

}  // namespace framelane
