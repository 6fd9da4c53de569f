#include "pipeline/output/age_clock.hpp"

namespace framelane {

void AgeClock::see(const ClockReading& now) {
  const Offset offset = now.wall.time_since_epoch() - now.steady.time_since_epoch();
  const Offset ahead = offset - offset_.value_or(offset);
  const bool jumped = ahead > kJump;
  jumped_now_ = jumped && ahead > ahead_ + kJump;
  if (jumped_now_) since_ = now.steady;
  const bool believed = !jumped || now.steady - since_ >= kHolds;
  if (believed) offset_ = offset;
  ahead_ = believed ? Offset::zero() : ahead;
}

ClockReading AgeClock::corrected(const ClockReading& now) const {
  return {now.steady, now.wall - ahead_};
}

}  // namespace framelane
