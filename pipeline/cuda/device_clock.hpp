#pragma once

#include <chrono>

#include "pipeline/cuda/cuda_handles.hpp"

namespace framelane {

/// Says when, on the steady clock, an event came on the GPU. CUDA only measures from event to
/// event: this keeps one event whose time is known, and replaces it about once a second, because
/// the clocks drift apart and the distance is a float. One thread at a time.
class DeviceClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// Blocks until the GPU has answered. Throws CudaError, as everything here.
  DeviceClock();

  /// Takes a new mark when the last is old. Blocks for tens of microseconds then.
  void keep();
  /// `event` is timed and has come, no longer than some seconds ago.
  Clock::time_point time_of(const CudaEvent& event) const;

 private:
  void mark(bool first);

  static constexpr std::chrono::seconds kMarkEvery{1};
  /// A GPU that takes longer to answer gives no good mark; after kMarkAnyway any is better.
  static constexpr std::chrono::milliseconds kPromptAnswer{1};
  static constexpr std::chrono::seconds kMarkAnyway{10};

  CudaStream stream_;
  CudaEvent marks_[2]{CudaEvent(CudaEvent::Kind::kDone), CudaEvent(CudaEvent::Kind::kDone)};
  int current_ = 0;
  Clock::time_point marked_at_;  // when the current one came
  Clock::time_point tried_at_;
};

}  // namespace framelane
