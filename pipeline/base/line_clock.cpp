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
  const std::optional<std::int64_t> zero = zero_us();
  if (!zero || time.count() > kFarthestUs || time.count() < -kFarthestUs) return std::nullopt;
  return Clock::time_point(std::chrono::microseconds(*zero + time.count()));
}

std::optional<LineClock::Clock::time_point> LineClock::gone_at() const {
  const Clock::time_point expected = expected_by_;
  if (!zero_us() || !split_after_ || expected == Clock::time_point()) return std::nullopt;
  return (busy_ ? std::max(expected, Clock::now()) : expected) + *split_after_;
}

}  // namespace framelane
