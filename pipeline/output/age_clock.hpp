#pragma once

#include <chrono>
#include <optional>

#include "pipeline/base/clock_reading.hpp"

namespace framelane {

/// The clock that says how old recordings are: the wall clock, but if that jumps ahead, it goes on
/// as if it had not until kHolds has passed since the last jump. What is deleted does not come
/// back, and a jump may be a mistake. A clock that is set back is followed at once, and so is one
/// that is wrong from the beginning. Not thread-safe.
class AgeClock {
 public:
  using Offset = std::chrono::system_clock::duration;
  /// So far ahead is a jump.
  static constexpr std::chrono::minutes kJump{1};
  static constexpr std::chrono::hours kHolds{1};

  /// Takes a reading into account.
  void see(const ClockReading& now);
  /// The reading, with this clock's time in place of the wall clock's.
  ClockReading corrected(const ClockReading& now) const;
  /// How far ahead the wall clock has jumped; zero once that is believed.
  Offset ahead() const { return ahead_; }
  bool is_ahead() const { return ahead_ > Offset::zero(); }
  /// True if the last reading was the first after a jump.
  bool jumped_now() const { return jumped_now_; }

 private:
  std::optional<Offset> offset_;  // of the wall clock to the steady one; nothing before a reading
  Offset ahead_{};
  bool jumped_now_ = false;
  std::chrono::steady_clock::time_point since_;  // of the last jump, if it is ahead
};

}  // namespace framelane
