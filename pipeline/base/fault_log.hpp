#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/base/rate_limiter.hpp"

namespace framelane {

/// Logs the faults of one thing without filling the log: a cause is written when it first occurs,
/// then summed up once a minute, even if several causes take turns. Causes that differ only in
/// numbers are one: the sum has the first text. Not thread-safe.
class FaultLog {
 public:
  using Clock = RateLimiter::Clock;

  /// `subject` begins every line: "feed gate", "feed gate: output hls".
  explicit FaultLog(std::string subject) : subject_(std::move(subject)) {}

  /// Warns "SUBJECT: CAUSE; CONSEQUENCE", unless this cause was written within a minute. `code`: a
  /// name of labels.hpp, see log::Fault.
  void failed(std::string_view code, const std::string& cause, const std::string& consequence,
              Clock::time_point now = Clock::now());
  /// It works again. If something had failed before, logs that, with `what` is running, and returns
  /// true. The next fault is then written at once, whatever its cause.
  bool recovered(std::string_view what = {});

 private:
  static constexpr std::chrono::minutes kRepeatWindow{1};

  int number_of(std::string_view code);

  const std::string subject_;
  RateLimiter repeats_{kRepeatWindow};
  std::vector<std::string_view> codes_;  // by their numbers
  int failures_ = 0;                     // since it last worked
};

}  // namespace framelane
