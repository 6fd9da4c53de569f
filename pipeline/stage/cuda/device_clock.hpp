#pragma once

#include <chrono>

#include "pipeline/stage/cuda/cuda_handles.hpp"

namespace framelane {

/// Tells the steady-clock time at which an event came on the GPU. CUDA only measures the time
/// between two events, so this class has a reference event whose time is known, called a mark. It
/// replaces the mark about once a second, because the two clocks drift apart and CUDA gives the
/// time between events as a float. One thread at a time. Everything here throws CudaError.
class DeviceClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// Blocks until the first mark has come.
  DeviceClock();

  /// When `event` came. The event has a time, has come, and was recorded at `recorded_at` or soon
  /// after. Measured from the mark, if that is fresh and known to be earlier than the event;
  /// otherwise `recorded_at`.
  Clock::time_point time_of(const CudaEvent& event, Clock::time_point recorded_at) const;
  /// Sets the mark's time right by what is known of `event`, which was recorded at `recorded_at` or
  /// soon after: it was seen to have come at `seen`, so that it came no later.
  void correct(const CudaEvent& event, Clock::time_point recorded_at, Clock::time_point seen);
  /// Refreshes the mark about once a second, in steps over several calls, without blocking. The
  /// time of the new mark is derived from `event`, which came at `seen` or before, and belongs to
  /// work that was queued at `recorded_at`.
  void refresh(const CudaEvent& event, Clock::time_point recorded_at, Clock::time_point seen);

 private:
  struct Mark {
    CudaEvent event{CudaEvent::Kind::kDone};
    Clock::time_point asked_at;  // when it was recorded
    Clock::time_point known_at;  // when it was seen to have come: later events come after it
    Clock::time_point came_at;   // when it came, as exactly as is known
  };
  enum class Next { kNone, kAsked, kCame };  // none; recorded; seen to have come

  /// Whether an event can be measured from the mark.
  bool is_measured(Clock::time_point recorded_at) const;
  void ask();
  Mark& next() { return marks_[1 - current_]; }

  static constexpr std::chrono::seconds kMarkEvery{1};
  /// A mark whose time is known less exactly is not used, unless the present one is stale.
  static constexpr std::chrono::milliseconds kWellKnown{1};
  /// A mark that is older than this is not measured from.
  static constexpr std::chrono::seconds kStale{10};

  CudaStream stream_;
  Mark marks_[2];
  int current_ = 0;          // the mark in use; the other one is the next
  Next next_ = Next::kNone;  // how far the next mark is
};

}  // namespace framelane
