#include "pipeline/feed/catch_up.hpp"

#include <algorithm>

namespace framelane {

CatchUp::Clock::time_point CatchUp::deadline(std::chrono::microseconds time,
                                             Clock::time_point arrived) {
  // The latest of all frames sets the origin, and is forgotten slowly: what is waited for does not
  // grow, and in the end the feed is no longer behind.
  constexpr int kForget = 8;
  const Clock::time_point own = arrived - time;
  if (origin_) {
    const Clock::time_point kept = *origin_ - (arrived - last_) / kForget;
    origin_ = std::clamp(kept, own, own + kMost);
  } else {
    origin_ = own;
  }
  last_ = arrived;
  return *origin_ + time;
}

}  // namespace framelane
