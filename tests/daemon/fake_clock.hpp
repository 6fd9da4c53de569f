#pragma once

#include <atomic>
#include <chrono>

#include "daemon/supervised_feed.hpp"

namespace framelane {

/// A clock that stands still until advance() is called. It begins at the current time, so that its
/// times can be compared with those that other code reads from steady_clock. Any thread may call.
/// Must outlive what uses function().
class FakeClock {
 public:
  using Clock = std::chrono::steady_clock;
  Clock::time_point now() const { return Clock::time_point(Clock::duration(time_.load())); }
  void advance(Clock::duration time) { time_ += time.count(); }
  Now function() const {
    return [this] { return now(); };
  }

 private:
  std::atomic<Clock::rep> time_{Clock::now().time_since_epoch().count()};
};

}  // namespace framelane
