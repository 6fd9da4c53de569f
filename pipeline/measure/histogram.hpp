#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace framelane {

/// A histogram of durations with fixed bounds. Any thread may use it; no call takes a lock.
class Histogram {
 public:
  /// The buckets' upper bounds in seconds. One more bucket takes all longer times.
  static constexpr std::array<double, 16> kBounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                                  0.01,   0.025,   0.05,   0.1,   0.25,   0.5,
                                                  1.0,    2.5,     5.0,    10.0};
  struct Snapshot {
    std::array<std::uint64_t, kBounds.size() + 1> counts{};  ///< per bucket, not cumulated
    std::uint64_t count = 0;                                 ///< always the sum of `counts`
    double sum_seconds = 0;
  };

  void observe(std::chrono::nanoseconds time);
  Snapshot snapshot() const;

 private:
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<std::int64_t> sum_ns_{0};
};

}  // namespace framelane
