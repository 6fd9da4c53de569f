#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "pipeline/measure/flight_recorder.hpp"

namespace framelane {

/// Measures for how long at least one piece of work ran (the union of overlapping spans), since
/// construction and over the last ten seconds. Work is reported as it begins and ends, or as a
/// whole span after it has ended; both may be mixed. Thread-safe; each call takes a short lock.
class BusyMeter {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(Clock::time_point now = Clock::now());
  void end(Clock::time_point now = Clock::now());
  /// Takes the work that Scopes are still measuring as ended now, because its threads were
  /// abandoned. Their ends will count for nothing.
  void abandon_scopes(Clock::time_point now = Clock::now());
  /// Adds a span that has ended. Spans may come late and in any order; time that was counted before
  /// is not counted again. To know it, the meter remembers the last kRemembered stretches of busy
  /// time. It takes all time before them as counted, so a span that comes very late may add
  /// nothing. Ignored unless `end` is after `start`.
  void add(Clock::time_point start, Clock::time_point end);

  /// Busy time since construction, including work that still runs. Monotonic, even if calls arrive
  /// out of time order.
  std::chrono::nanoseconds total(Clock::time_point now = Clock::now()) const;
  /// Busy time within the last ten seconds. Time is kept per second, so the share of the oldest
  /// second, of which only a part is in the window, is an estimate.
  std::chrono::nanoseconds recent(Clock::time_point now = Clock::now()) const;
  /// Busy share of the last ten seconds, or of the time since the first work if that is shorter:
  /// 0 to 1.
  double recent_ratio(Clock::time_point now = Clock::now()) const;

  /// Busy from construction to destruction, which is also a slice in a trace: the slices of a meter
  /// add up to what it measures. The track outlives the scope.
  class Scope {
   public:
    Scope(BusyMeter& meter, const TraceTrack& track, TraceKind kind,
          std::int64_t frame = FlightRecorder::kNoFrame)
        : meter_(meter),
          track_(track),
          kind_(kind),
          frame_(frame),
          begin_(Clock::now()),
          generation_(meter.begin_scope(begin_)) {}
    ~Scope() {
      const Clock::time_point end = Clock::now();
      if (meter_.end_scope(generation_, end)) track_.slice(kind_, begin_, end, frame_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Which frame it was, if that comes out meanwhile. See FlightRecorder::Record.
    void set_frame(std::int64_t frame) { frame_ = frame; }

   private:
    BusyMeter& meter_;
    const TraceTrack& track_;
    const TraceKind kind_;
    std::int64_t frame_;
    const Clock::time_point begin_;
    const std::uint32_t generation_;
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

  std::uint32_t begin_scope(Clock::time_point now);
  /// False if the scope was abandoned.
  bool end_scope(std::uint32_t generation, Clock::time_point now);
  void begin_locked(Clock::time_point now);
  void end_locked(int works, Clock::time_point now);
  template <typename Visit>
  void for_each_new_part(Span span, Visit visit) const;
  void count(Span span);
  void remember(Span span);
  void spread(Span part);
  std::chrono::nanoseconds recent_locked(Clock::time_point now) const;

  mutable std::mutex mutex_;
  int running_ = 0;
  int scopes_ = 0;                // that many of them are Scopes of this generation
  std::uint32_t generation_ = 0;  // of Scopes; the earlier ones are abandoned
  Clock::time_point since_;       // since when running_ is not 0
  Clock::time_point first_ = Clock::time_point::max();
  std::chrono::nanoseconds busy_{0};
  mutable std::chrono::nanoseconds told_{0};   // the most that total() has returned
  std::array<Span, kRemembered + 1> spans_{};  // busy stretches: ascending, with gaps between them
  int span_count_ = 0;
  Clock::time_point forgotten_until_ = Clock::time_point::min();  // counted, whatever was reported
  std::array<Second, kWindow.count() + 2> seconds_{};             // at number % size
};

}  // namespace framelane
