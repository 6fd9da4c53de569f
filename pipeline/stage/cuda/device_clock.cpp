#include "pipeline/stage/cuda/device_clock.hpp"

#include <algorithm>

namespace framelane {

DeviceClock::DeviceClock() {
  ask();
  next().event.synchronize();
  Mark& mark = next();
  mark.known_at = Clock::now();
  mark.came_at = mark.asked_at + (mark.known_at - mark.asked_at) / 2;
  current_ = 1 - current_;
  next_ = Next::kNone;
}

DeviceClock::Clock::time_point DeviceClock::time_of(const CudaEvent& event,
                                                    Clock::time_point recorded_at) const {
  if (!is_measured(recorded_at)) return recorded_at;
  const Mark& mark = marks_[current_];
  return mark.came_at + event.since(mark.event);
}

void DeviceClock::correct(const CudaEvent& event, Clock::time_point recorded_at,
                          Clock::time_point seen) {
  if (!is_measured(recorded_at)) return;
  Mark& mark = marks_[current_];
  mark.came_at = std::min(mark.came_at, seen - event.since(mark.event));
}

bool DeviceClock::is_measured(Clock::time_point recorded_at) const {
  const Mark& mark = marks_[current_];
  return recorded_at >= mark.known_at && recorded_at - mark.known_at <= kStale;
}

void DeviceClock::ask() {
  next().asked_at = Clock::now();
  next().event.record(stream_);
  next_ = Next::kAsked;
}

void DeviceClock::refresh(const CudaEvent& event, Clock::time_point recorded_at,
                          Clock::time_point seen) {
  Mark& mark = next();
  switch (next_) {
    case Next::kNone:
      if (seen - std::max(mark.asked_at, marks_[current_].asked_at) >= kMarkEvery) ask();
      return;
    case Next::kAsked:
      if (!mark.event.has_come()) return;
      mark.known_at = Clock::now();
      next_ = Next::kCame;
      return;
    case Next::kCame:
      if (seen - mark.asked_at >= kMarkEvery) {
        next_ = Next::kNone;  // too few jobs came by to learn its time: try with a new one
        return;
      }
      if (recorded_at < mark.known_at) return;
      // The mark came between the time it was recorded and the latest time that `event` allows,
      // which is `seen` less the GPU's distance of the two events. Its time is taken to be the
      // middle.
      const Clock::duration between = seen - event.since(mark.event) - mark.asked_at;
      const Clock::duration unknown = std::max(between, Clock::duration(0));
      if (unknown > kWellKnown && seen - marks_[current_].asked_at < kStale) return;
      mark.came_at = mark.asked_at + unknown / 2;
      current_ = 1 - current_;
      next_ = Next::kNone;
  }
}

}  // namespace framelane
