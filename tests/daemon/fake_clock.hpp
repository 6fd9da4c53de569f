#pragma once

#include <atomic>
#include <chrono>

#include "daemon/supervised_feed.hpp"

namespace framelane {

/// A clock that stands still until it is moved on. It begins at the present, so that it can be
/// compared with what reads steady_clock itself. Any thread; outlives what it is given to.
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
