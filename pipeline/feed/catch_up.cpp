#include "pipeline/feed/catch_up.hpp"

#include <algorithm>

namespace framelane {

CatchUp::Clock::time_point CatchUp::deadline(std::chrono::microseconds time,
                                             Clock::time_point arrived) {
  // The latest of all frames sets the origin, and is forgotten slowly: what is waited for does not
  // grow, and in the end the feed is no longer behind.
  constexpr int kForget = 8;
  const Clock::time_point own = arrived - time;
  const Clock::time_point kept = origin_ ? *origin_ - (arrived - last_) / kForget : own;
  origin_ = std::clamp(kept, own, own + kMost);
  last_ = arrived;
  if (*origin_ == own) {  // it is late itself: if others have waited with it, they come now
    begun_ = arrived;
    until_ = patient_ ? Clock::time_point::max() : arrived + kTrial;
  }
  return std::min(*origin_ + time, until_);
}

void CatchUp::missed(Clock::time_point now) {
  if (now - begun_ >= kTrial) until_ = begun_;
}

}  // namespace framelane
