#pragma once

#include <algorithm>
#include <array>
#include <chrono>

#include "pipeline/base/labels.hpp"
#include "pipeline/measure/busy_meter.hpp"

namespace framelane {

/// How busy each engine of a device or a lane is, and how busy any of them. Thread-safe.
class EngineMeters {
 public:
  using Clock = BusyMeter::Clock;

  const BusyMeter& operator[](Engine engine) const { return engines_[index_of(engine)]; }
  const BusyMeter& any() const { return any_; }

  void begin(Engine engine, Clock::time_point now) {
    engines_[index_of(engine)].begin(now);
    any_.begin(now);
  }
  void end(Engine engine, Clock::time_point now) {
    engines_[index_of(engine)].end(now);
    any_.end(now);
  }
  /// Work that has ended; see BusyMeter::add.
  void add(Engine engine, Clock::time_point start, Clock::time_point end) {
    engines_[index_of(engine)].add(start, end);
    any_.add(start, end);
  }

  /// Over the last ten seconds, the sum of the engines' busy times divided by the time in which any
  /// of them was busy. Above 1 they worked at the same time. 1 when idle.
  double overlap_ratio(Clock::time_point now = Clock::now()) const {
    std::chrono::nanoseconds sum{0};
    for (const BusyMeter& engine : engines_) sum += engine.recent(now);
    const std::chrono::nanoseconds any = any_.recent(now);
    if (any.count() <= 0) return 1;
    return std::max(static_cast<double>(sum.count()) / static_cast<double>(any.count()), 1.0);
  }

 private:
  std::array<BusyMeter, kEngineNames.size()> engines_;
  BusyMeter any_;
};

}  // namespace framelane
