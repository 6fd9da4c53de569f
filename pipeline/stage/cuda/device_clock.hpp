#pragma once

#include <chrono>

#include "pipeline/stage/cuda/cuda_handles.hpp"

namespace framelane {

/// Says when, on the steady clock, an event came on the GPU. CUDA only measures from event to
/// event: this keeps one event whose time is known, a mark, and replaces it about once a second,
/// because the clocks drift apart and the distance is a float. One thread at a time.
class DeviceClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// Blocks until the GPU has answered. Throws CudaError, as everything here.
  DeviceClock();

  /// When `event` came: it is timed, has come, and was recorded at `recorded_at` or soon after.
  /// Measured from the mark where that is known to be the earlier of the two, and is fresh; else
  /// taken from `recorded_at`.
  Clock::time_point time_of(const CudaEvent& event, Clock::time_point recorded_at) const;
  /// Takes a new mark, in steps, when the last is old. Never waits for the GPU: `event` tells what
  /// there is to know, which came at `seen` at the latest, of work begun at `recorded_at`.
  void keep(const CudaEvent& event, Clock::time_point recorded_at, Clock::time_point seen);

 private:
  struct Mark {
    CudaEvent event{CudaEvent::Kind::kDone};
    Clock::time_point asked_at;  // when it was recorded
    Clock::time_point known_at;  // when it was found to have come; what is recorded later is later
    Clock::time_point came_at;   // as near as is known
  };
  enum class Next { kNone, kAsked, kCame };

  void ask();
  Mark& next() { return marks_[1 - current_]; }

  static constexpr std::chrono::seconds kMarkEvery{1};
  /// A mark whose time is less well known is not taken, unless the present one is stale.
  static constexpr std::chrono::milliseconds kWellKnown{1};
  /// From a mark that is older than this nothing is measured.
  static constexpr std::chrono::seconds kStale{10};

  CudaStream stream_;
  Mark marks_[2];
  int current_ = 0;
  Next next_ = Next::kNone;  // how far the other is
};

}  // namespace framelane
