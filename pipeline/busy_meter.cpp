#include "pipeline/busy_meter.hpp"

#include <algorithm>

namespace framelane {

std::chrono::nanoseconds BusyMeter::busy_at(Clock::time_point now) const {
  return running_ > 0 && now > since_ ? busy_ + (now - since_) : busy_;
}

void BusyMeter::mark(Clock::time_point now) {
  if (mark_count_ > 0 && now - marks_[newest_mark_].time < std::chrono::seconds(1)) return;
  newest_mark_ = mark_count_ == 0 ? 0 : (newest_mark_ + 1) % static_cast<int>(marks_.size());
  mark_count_ = std::min(mark_count_ + 1, static_cast<int>(marks_.size()));
  marks_[newest_mark_] = {now, busy_at(now)};
}

void BusyMeter::begin(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  mark(now);
  if (running_++ == 0) since_ = now;
}

void BusyMeter::end(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  mark(now);
  if (--running_ == 0 && now > since_) busy_ += now - since_;
}

std::chrono::nanoseconds BusyMeter::total(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return busy_at(now);
}

double BusyMeter::recent_ratio(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  if (mark_count_ == 0) return 0;
  // The window begins at the newest mark that is at least ten seconds old. Between marks nothing
  // began or ended, or less than a second passed; work that still runs is added by busy_at.
  const auto window = std::chrono::seconds(kWindowSeconds);
  const Mark* start = nullptr;
  const Mark* oldest = nullptr;
  for (int i = 0; i < mark_count_; ++i) {
    const Mark& candidate = marks_[i];
    if (oldest == nullptr || candidate.time < oldest->time) oldest = &candidate;
    if (now - candidate.time >= window && (start == nullptr || candidate.time > start->time)) {
      start = &candidate;
    }
  }
  if (start == nullptr) start = oldest;
  // After a long silence the newest mark may be far older than the window: what was counted since
  // it is then at most what still runs, so measure over the window alone.
  const auto elapsed = std::min<std::chrono::nanoseconds>(now - start->time, window);
  if (elapsed.count() <= 0) return 0;
  const auto busy = busy_at(now) - start->busy;
  return std::clamp(static_cast<double>(busy.count()) / static_cast<double>(elapsed.count()), 0.0,
                    1.0);
}

}  // namespace framelane
