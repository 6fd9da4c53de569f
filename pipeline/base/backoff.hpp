#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <stop_token>

namespace framelane {

struct BackoffOptions {
  std::chrono::milliseconds first{1000};
  std::chrono::milliseconds max{60000};
};

/// The one policy of waiting before another try: exponential between `first` and `max`, with up to
/// a fifth of jitter either way so that peers are not hammered in step, and back to `first` after
/// a minute of success. One thread at a time.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kResetAfter{60};

  explicit Backoff(const BackoffOptions& options, std::uint32_t seed = std::random_device{}());

  /// How long to wait before the next try; doubles the one after.
  std::chrono::milliseconds next();
  /// Data flowed. Resets once it has flowed for kResetAfter since the last failure.
  void succeeded(Clock::time_point now = Clock::now());

 private:
  BackoffOptions options_;
  std::chrono::milliseconds current_;
  std::minstd_rand random_;
  Clock::time_point good_since_{};
};

/// Waits; false when stopped first.
bool sleep_for(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace framelane
