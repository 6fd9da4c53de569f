#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "pipeline/base/rate_limiter.hpp"

namespace framelane {

/// Keeps faults that repeat from filling the log: a cause is written when it first comes and then
/// summed up once a minute, also where several take turns. One thread.
class FaultLog {
 public:
  using Clock = RateLimiter::Clock;

  /// `subject`: "feed gate", "feed gate: output hls".
  explicit FaultLog(std::string subject) : subject_(std::move(subject)) {}

  /// Warns: subject: cause; consequence.
  void failed(const std::string& cause, const std::string& consequence,
              Clock::time_point now = Clock::now());
  /// It works again: says so when something failed before, with `what` runs; false when not. The
  /// next fault is written at once, whichever it is.
  bool recovered(std::string_view what = {});

 private:
  static constexpr std::chrono::minutes kRepeatWindow{1};

  const std::string subject_;
  RateLimiter repeats_{kRepeatWindow};
  int failures_ = 0;  // since it last worked
};

}  // namespace framelane
