#include "pipeline/measure/busy_meter.hpp"

#include <algorithm>
#include <utility>

namespace framelane {
namespace {

using TimePoint = BusyMeter::Clock::time_point;

std::int64_t second_of(TimePoint time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

TimePoint start_of(std::int64_t second) { return TimePoint(std::chrono::seconds(second)); }

}  // namespace

/// Calls visit(part) for each part of the span that has not been counted yet.
template <typename Visit>
void BusyMeter::for_each_new_part(Span span, Visit visit) const {
  Clock::time_point from = std::max(span.start, forgotten_until_);
  for (int i = 0; i < span_count_ && from < span.end; ++i) {
    const Span& known = spans_[i];
    if (known.end <= from) continue;
    if (known.start > from) visit(Span{from, std::min(known.start, span.end)});
    from = std::max(from, known.end);
  }
  if (from < span.end) visit(Span{from, span.end});
}

void BusyMeter::count(Span span) {
  if (span.end <= span.start) return;
  first_ = std::min(first_, span.start);
  for_each_new_part(span, [this](Span part) {
    busy_ += part.end - part.start;
    spread(part);
  });
  remember(span);
}

/// Adds a span to the remembered ones, merged with those that it touches or overlaps.
void BusyMeter::remember(Span span) {
  int first = 0;
  while (first < span_count_ && spans_[first].end < span.start) ++first;
  int last = first;
  for (; last < span_count_ && spans_[last].start <= span.end; ++last) {
    span.start = std::min(span.start, spans_[last].start);
    span.end = std::max(span.end, spans_[last].end);
  }
  const auto begin = spans_.begin();
  if (last == first) {
    std::move_backward(begin + first, begin + span_count_, begin + span_count_ + 1);
    ++span_count_;
  } else {
    std::move(begin + last, begin + span_count_, begin + first + 1);
    span_count_ -= last - first - 1;
  }
  spans_[first] = span;
  if (span_count_ <= kRemembered) return;
  forgotten_until_ = std::max(forgotten_until_, spans_[0].end);
  std::move(begin + 1, begin + span_count_, begin);
  --span_count_;
}

/// Adds a part to the seconds in which it lies, except to those that are too old to have a slot.
void BusyMeter::spread(Span part) {
  const auto slots = static_cast<std::int64_t>(seconds_.size());
  const std::int64_t last = second_of(part.end);
  for (std::int64_t number = std::max(second_of(part.start), last - slots + 1); number <= last;
       ++number) {
    Second& second = seconds_[static_cast<std::size_t>(number % slots)];
    if (second.number > number) continue;
    if (second.number < number) second = {number, std::chrono::nanoseconds(0)};
    second.busy +=
        std::min(part.end, start_of(number + 1)) - std::max(part.start, start_of(number));
  }
}

void BusyMeter::begin_locked(Clock::time_point now) {
  first_ = std::min(first_, now);
  if (running_++ == 0) since_ = now;
}

void BusyMeter::end_locked(int works, Clock::time_point now) {
  if (works == 0) return;
  running_ -= works;
  if (running_ == 0) count({since_, now});
}

void BusyMeter::begin(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  begin_locked(now);
}

void BusyMeter::end(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  end_locked(1, now);
}

std::uint32_t BusyMeter::begin_scope(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  begin_locked(now);
  ++scopes_;
  return generation_;
}

bool BusyMeter::end_scope(std::uint32_t generation, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return false;
  --scopes_;
  end_locked(1, now);
  return true;
}

void BusyMeter::abandon_scopes(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  ++generation_;
  end_locked(std::exchange(scopes_, 0), now);
}

void BusyMeter::add(Clock::time_point start, Clock::time_point end) {
  const std::lock_guard lock(mutex_);
  count({start, end});
}

std::chrono::nanoseconds BusyMeter::total(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  std::chrono::nanoseconds total = busy_;
  if (running_ > 0) {
    for_each_new_part({since_, now}, [&total](Span part) { total += part.end - part.start; });
  }
  return told_ = std::max(told_, total);
}

std::chrono::nanoseconds BusyMeter::recent_locked(Clock::time_point now) const {
  const Clock::time_point start = now - kWindow;
  std::chrono::nanoseconds busy{0};
  for (const Second& second : seconds_) {
    const Clock::time_point end = start_of(second.number + 1);
    if (second.number < 0 || end <= start) continue;
    // The window begins inside this second. When in the second the work ran is not known, so that
    // the part inside gets its proportional share.
    const auto inside = std::min<Clock::duration>(end - start, std::chrono::seconds(1));
    busy += second.busy * inside.count() / Clock::duration(std::chrono::seconds(1)).count();
  }
  if (running_ > 0) {
    for_each_new_part({std::max(since_, start), now},
                      [&busy](Span part) { busy += part.end - part.start; });
  }
  return std::min<std::chrono::nanoseconds>(busy, kWindow);
}

std::chrono::nanoseconds BusyMeter::recent(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return recent_locked(now);
}

double BusyMeter::recent_ratio(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  if (now <= first_) return 0;
  const auto elapsed = std::min<std::chrono::nanoseconds>(now - first_, kWindow);
  return std::clamp(
      static_cast<double>(recent_locked(now).count()) / static_cast<double>(elapsed.count()), 0.0,
      1.0);
}

}  // namespace framelane
