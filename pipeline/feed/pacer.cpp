#include "pipeline/feed/pacer.hpp"

namespace framelane {

bool Pacer::wait_until(std::chrono::microseconds time, const std::stop_token& stop) {
  constexpr std::chrono::seconds kTooLate{5};
  const auto now = std::chrono::steady_clock::now();
  if (!origin_ || now - (*origin_ + time) > kTooLate) origin_ = now - time;
  const auto due = *origin_ + time;
  if (due <= now) return !stop.stop_requested();
  std::unique_lock lock(mutex_);
  never_.wait_until(lock, stop, due, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace framelane
