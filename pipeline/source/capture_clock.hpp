#pragma once

#include <array>
#include <cstdint>

#include "pipeline/base/line_clock.hpp"

namespace framelane {

/// Finds out when the pictures of a live source were taken, and tells a LineClock. A picture cannot
/// arrive before it was taken, and of many pictures some are hardly held up on their way. So zero
/// of the line is the least of (arrival − time on the line) over the last two minutes.
///
/// The camera's clock may be faster or slower than ours: zero follows, but by no more than 1 ms in
/// a second. Where it is off by more than drift explains, the delay of all pictures has changed, or
/// the line is not where it seemed to be: zero is then set at once.
///
/// Source thread. Reads no clock. Nothing allocates.
class CaptureClock {
 public:
  explicit CaptureClock(LineClock& line) : line_(line) { restart(); }

  bool known() const { return line_.zero_us().has_value(); }
  /// When 0 on the line was, in microseconds of the steady clock. Only if known.
  std::int64_t zero_us() const { return *line_.zero_us(); }
  /// The source does not tell time.
  void forget();

  /// What arrived before says nothing of what follows: the line has jumped.
  void restart();
  /// A picture with this time on the line has arrived, at `arrived_us` on the steady clock. The
  /// first sets zero.
  void observe(std::int64_t line_us, std::int64_t arrived_us);

 private:
  static constexpr std::int64_t kBucketUs = 1'000'000;
  static constexpr std::int64_t kNothing = INT64_MAX;
  static constexpr std::int64_t kNone = INT64_MIN;

  std::int64_t& bucket_at(std::int64_t number);
  void turn_to(std::int64_t bucket);

  LineClock& line_;
  std::array<std::int64_t, 120> least_in_;  // by the second of arrival, of the last so many
  std::int64_t least_ = kNothing;           // of all
  std::int64_t bucket_ = kNone;             // the newest
  std::int64_t observed_us_ = 0;            // the last arrival
};

}  // namespace framelane
