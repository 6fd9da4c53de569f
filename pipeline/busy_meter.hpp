#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace framelane {

/// Adds up the time during which at least one piece of work ran (the union of overlapping
/// intervals), in all and over the last ten seconds. Thread-safe; a call takes a short lock.
class BusyMeter {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(Clock::time_point now = Clock::now());
  void end(Clock::time_point now = Clock::now());

  /// Busy time since construction, work still running included.
  std::chrono::nanoseconds total(Clock::time_point now = Clock::now()) const;
  /// Share of the last ten seconds (or of the time since the first begin, when shorter), 0..1.
  double recent_ratio(Clock::time_point now = Clock::now()) const;

  /// Busy from construction to destruction.
  class Scope {
   public:
    explicit Scope(BusyMeter& meter) : meter_(meter) { meter_.begin(); }
    ~Scope() { meter_.end(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    BusyMeter& meter_;
  };

 private:
  static constexpr int kWindowSeconds = 10;
  struct Mark {
    Clock::time_point time;
    std::chrono::nanoseconds busy{0};
  };
  std::chrono::nanoseconds busy_at(Clock::time_point now) const;
  void mark(Clock::time_point now);

  mutable std::mutex mutex_;
  int running_ = 0;
  Clock::time_point since_;
  std::chrono::nanoseconds busy_{0};
  std::array<Mark, kWindowSeconds + 1> marks_{};  // one a second, oldest overwritten
  int mark_count_ = 0;
  int newest_mark_ = 0;
};

}  // namespace framelane
