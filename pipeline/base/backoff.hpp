#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>

namespace framelane {

struct BackoffOptions {
  std::chrono::milliseconds first{1000};
  std::chrono::milliseconds max{60000};

  friend bool operator==(const BackoffOptions&, const BackoffOptions&) = default;
};

/// How long to wait before another try. Waits double from `first` up to `max`, each made up to a
/// fifth shorter or longer at random, so that many feeds do not try at the same moment. After a
/// minute of success they begin at `first` again. Reads no clock. Not thread-safe.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kResetAfter{60};

  explicit Backoff(const BackoffOptions& options, std::uint32_t seed = std::random_device{}());

  /// Waits are by these from the next failure on, and begin at `first`. False, and nothing changes,
  /// if they are as before.
  bool set_options(const BackoffOptions& options);
  /// A try has failed: how long to wait before the next one.
  std::chrono::milliseconds next();
  /// Data flows; called as often as it does. Waits begin at `first` again once kResetAfter has
  /// passed since the first call after a failure.
  void succeeded(Clock::time_point now);

 private:
  BackoffOptions options_;
  std::chrono::milliseconds current_;
  std::minstd_rand random_;
  std::optional<Clock::time_point> good_since_;  // nothing: the last try failed
};

/// Waits for `time`; false if stopped before that.
bool sleep_for(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace framelane
