#include "pipeline/feed/pacer.hpp"

namespace framelane {

Pacer::Clock::time_point Pacer::due(std::chrono::microseconds time, Clock::time_point now) {
  constexpr std::chrono::seconds kTooLate{5};
  if (!origin_ || now - (*origin_ + time) > kTooLate) origin_ = now - time;
  return *origin_ + time;
}

bool Pacer::wait_until(std::chrono::microseconds time, Clock::time_point now,
                       const std::stop_token& stop) {
  const Clock::time_point when = due(time, now);
  if (when <= now) return !stop.stop_requested();
  std::unique_lock lock(mutex_);
  never_.wait_until(lock, stop, when, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace framelane
