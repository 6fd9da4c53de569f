#include "pipeline/base/backoff.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace framelane {

Backoff::Backoff(const BackoffOptions& options, std::uint32_t seed)
    : options_(options), current_(options.first), random_(seed) {}

bool Backoff::set_options(const BackoffOptions& options) {
  if (options == options_) return false;
  options_ = options;
  current_ = options.first;
  return true;
}

std::chrono::milliseconds Backoff::next() {
  good_since_.reset();
  std::uniform_real_distribution<double> jitter(0.8, 1.2);
  const auto wait = std::chrono::milliseconds(
      static_cast<std::int64_t>(static_cast<double>(current_.count()) * jitter(random_)));
  current_ = std::min(current_ * 2, options_.max);
  return std::min(wait, options_.max);
}

void Backoff::succeeded(Clock::time_point now) {
  if (!good_since_) good_since_ = now;
  if (now - *good_since_ >= kResetAfter) current_ = options_.first;
}

bool sleep_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace framelane
