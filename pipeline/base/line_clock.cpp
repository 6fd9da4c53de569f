#include "pipeline/base/line_clock.hpp"

#include <algorithm>

namespace framelane {

LineClock::Busy::~Busy() {
  if (clock_.expected_by_.load() != Clock::time_point()) {
    clock_.expected_by_ = std::max(clock_.expected_by_.load(), Clock::now());
  }
  clock_.busy_ = false;
}

std::optional<LineClock::Clock::time_point> LineClock::taken_at(
    std::chrono::microseconds time) const {
  if (time.count() > kFarthestUs || time.count() < -kFarthestUs) return std::nullopt;
  if (const auto zero = zero_us()) {
    return Clock::time_point(std::chrono::microseconds(*zero + time.count()));
  }
  const Clock::time_point due = due_zero_;
  return due == Clock::time_point() ? std::nullopt : std::optional(due + time);
}

std::optional<LineClock::Clock::time_point> LineClock::gone_at() const {
  const Clock::time_point expected = expected_by_;
  if (!zero_us() || !split_after_ || expected == Clock::time_point()) return std::nullopt;
  return (busy_ ? std::max(expected, Clock::now()) : expected) + *split_after_;
}

}  // namespace framelane
