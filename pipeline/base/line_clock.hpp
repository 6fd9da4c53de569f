#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace framelane {

/// A feed's line of time beside the steady clock: when its pictures were taken, and when its source
/// counts as gone. Knows neither as long as the source does not tell time, as a file does not; a
/// picture of one that is paced counts as taken when it was due. The source thread writes, any
/// thread asks; nothing blocks.
class LineClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// Some 70 years: no time that can be believed is farther from zero.
  static constexpr std::int64_t kFarthestUs = std::int64_t{1} << 51;

  /// `split_after`: a source that is silent for longer counts as gone. Nothing: none ever does.
  explicit LineClock(std::optional<std::chrono::milliseconds> split_after = std::nullopt)
      : split_after_(split_after) {}

  // For the source thread.

  /// What lies at 0 on the line was taken at `us` on the steady clock. Moves slowly if the source's
  /// clock is faster or slower than ours.
  void set_zero(std::int64_t us) { zero_us_ = us; }
  /// The source does not tell time.
  void forget() { zero_us_ = kUnknown; }
  /// It is paced: what lies at 0 on the line was due at `moment`.
  void set_due(Clock::time_point moment) { due_zero_ = moment; }
  /// A picture has come. `wait`: the next one may take so long. `pause`: pictures are usually so
  /// far apart, at most.
  void arrived(Clock::time_point moment, std::chrono::microseconds wait,
               std::chrono::microseconds pause) {
    pause_ = pause;
    expected_by_ = moment + wait;
  }

  /// While one exists, the source is not waited for, since the source thread hands on what has
  /// come.
  class Busy {
   public:
    explicit Busy(LineClock& clock) : clock_(clock) { clock_.busy_ = true; }
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    LineClock& clock_;
  };

  // For any thread.

  /// When 0 on the line was, in microseconds of the steady clock.
  std::optional<std::int64_t> zero_us() const {
    const std::int64_t us = zero_us_;
    return us == kUnknown ? std::nullopt : std::optional(us);
  }
  /// When a picture with this time on the line was taken; of a paced source that does not tell
  /// time, when it was due.
  std::optional<Clock::time_point> taken_at(std::chrono::microseconds time) const;
  /// From then on the source counts as gone, unless a picture comes before; this moves while the
  /// source thread is busy. Nothing: it never does.
  std::optional<Clock::time_point> gone_at() const;
  /// True if the source was gone between two pictures that are so far apart on the line.
  bool splits(std::chrono::microseconds distance) const {
    return zero_us() && split_after_ && distance - pause_.load() > *split_after_;
  }

 private:
  static constexpr std::int64_t kUnknown = INT64_MIN;

  const std::optional<std::chrono::milliseconds> split_after_;
  std::atomic<std::int64_t> zero_us_{kUnknown};
  std::atomic<Clock::time_point> due_zero_{};  // none: nothing is paced
  std::atomic<bool> busy_{false};
  std::atomic<Clock::time_point> expected_by_{};
  std::atomic<std::chrono::microseconds> pause_{};
};

}  // namespace framelane
