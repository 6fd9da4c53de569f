#pragma once

#include <chrono>

#include "pipeline/stage/cuda/cuda_handles.hpp"

namespace framelane {

/// Waits for one event after another by asking and sleeping. CUDA's own wait that does not spin
/// (cudaEventBlockingSync) takes an interrupt for each event and wakes a thread of the driver once
/// or twice, which was a fifth to a quarter of a frame's CPU time with few feeds
/// (docs/benchmarks.md). Here the first sleep is as long as events have usually been in coming, and
/// the later ones are short. One thread.
class EventWait {
 public:
  /// Lets sleeps of the calling thread end on time. By default Linux adds up to 50 us.
  static void prepare_thread();
  /// Blocks until the event has come, and then for up to kLongest; for up to kLongestFirst if
  /// events are usually longer in coming. Throws CudaError.
  void wait(const CudaEvent& event);

 private:
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kShortest = std::chrono::microseconds(15);
  static constexpr Duration kLongest = std::chrono::microseconds(250);
  static constexpr Duration kLongestFirst = std::chrono::milliseconds(5);
  Duration usual_{0};  // how long events have been in coming of late
};

}  // namespace framelane
