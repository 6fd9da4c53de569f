#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace framelane {

/// Keeps a fault that repeats from filling the log: a new cause is written at once, the same one
/// again at most once a minute, with how often it came in between. One thread.
class FaultLog {
 public:
  /// `subject`: "feed gate", "feed gate: output hls".
  explicit FaultLog(std::string subject) : subject_(std::move(subject)) {}

  /// Warns: subject: cause; consequence.
  void failed(const std::string& cause, const std::string& consequence);
  /// It works again: says so when something failed before, with `what` runs; false when not.
  bool recovered(std::string_view what = {});

 private:
  static constexpr std::chrono::minutes kRepeatEvery{1};

  const std::string subject_;
  std::string cause_;
  int failures_ = 0;    // since it last worked
  int suppressed_ = 0;  // since the last line
  std::chrono::steady_clock::time_point logged_at_;
};

}  // namespace framelane
