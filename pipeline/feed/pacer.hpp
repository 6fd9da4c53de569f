#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>

namespace framelane {

/// Lets media through at the speed of its timestamps, as a camera would send it. One thread.
class Pacer {
 public:
  using Clock = std::chrono::steady_clock;

  /// When media with the timestamp `time` is due. The first call is due at once and sets the
  /// origin. Media that is more than five seconds late (the machine slept) sets a new one, so that
  /// the pacer does not rush to catch up.
  Clock::time_point due(std::chrono::microseconds time, Clock::time_point now);
  /// When timestamp 0 was due, by the last call; nothing before the first.
  std::optional<Clock::time_point> origin() const { return origin_; }
  /// Waits until it is due; false if stopped first.
  bool wait_until(std::chrono::microseconds time, Clock::time_point now,
                  const std::stop_token& stop);

 private:
  std::optional<Clock::time_point> origin_;
  std::mutex mutex_;
  std::condition_variable_any never_;  // a member, because making one allocates
};

}  // namespace framelane
