#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace framelane {

/// Adds up the time during which at least one piece of work ran (the union of overlapping
/// spans), in all and over the last ten seconds. Work is reported as it begins and ends, or as a
/// whole when it is over: both may be mixed. Thread-safe; a call takes a short lock.
class BusyMeter {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(Clock::time_point now = Clock::now());
  void end(Clock::time_point now = Clock::now());
  /// A span that is over. Spans may come late and out of order: each is compared with the last
  /// kRemembered stretches of busy time. What lies before those counts as reported already, so that
  /// time is never counted twice. Nothing when `end` is not after `start`.
  void add(Clock::time_point start, Clock::time_point end);

  /// Busy time since construction, work still running included. Never less than it has said before,
  /// though calls may come in another order than their times.
  std::chrono::nanoseconds total(Clock::time_point now = Clock::now()) const;
  /// Busy time within the last ten seconds, to within a part of the first of them.
  std::chrono::nanoseconds recent(Clock::time_point now = Clock::now()) const;
  /// Share of the last ten seconds (or of the time since the first work, when shorter), 0..1.
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
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr int kRemembered = 16;
  struct Span {
    Clock::time_point start;
    Clock::time_point end;
  };
  /// Busy time within one second of the clock.
  struct Second {
    std::int64_t number = -1;  // of the second, since the clock's epoch
    std::chrono::nanoseconds busy{0};
  };

  template <typename Visit>
  void for_each_new_part(Span span, Visit visit) const;
  void count(Span span);
  void remember(Span span);
  void spread(Span part);
  std::chrono::nanoseconds recent_locked(Clock::time_point now) const;

  mutable std::mutex mutex_;
  int running_ = 0;
  Clock::time_point since_;  // when the present stretch of begun work began
  Clock::time_point first_ = Clock::time_point::max();
  std::chrono::nanoseconds busy_{0};
  mutable std::chrono::nanoseconds told_{0};   // by total()
  std::array<Span, kRemembered + 1> spans_{};  // ascending, apart from one another
  int span_count_ = 0;
  Clock::time_point forgotten_until_ = Clock::time_point::min();
  std::array<Second, kWindow.count() + 2> seconds_{};  // by number modulo size
};

}  // namespace framelane
