#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>

namespace framelane {

/// Lets media through at the speed its timestamps tell, as a camera would. One thread.
class Pacer {
 public:
  /// Waits until `time` on the media's clock is due; false when stopped first. More than five
  /// seconds late (the machine slept), the clock starts anew instead of rushing after.
  bool wait_until(std::chrono::microseconds time, const std::stop_token& stop);

 private:
  std::optional<std::chrono::steady_clock::time_point> origin_;
  std::mutex mutex_;
  std::condition_variable_any never_;  // made once: it allocates
};

}  // namespace framelane
