#pragma once

#include <chrono>
#include <memory>

#include "pipeline/cuda/cuda_lane.hpp"

namespace framelane {

/// The one thread of a GPU that waits for its work, lane by lane in the order in which the jobs
/// were queued, which is about the order in which they end.
class CompletionThread {
 public:
  explicit CompletionThread(std::shared_ptr<CudaContext> context);
  /// Ends when nothing is left to wait for. A GPU that hangs is given a second; then the thread is
  /// left to itself, with what it waits for.
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  /// Will call lane->wait() and hand_over(). Any thread; never blocks.
  void watch(std::shared_ptr<CudaLane> lane);
  /// Whether the GPU has been at the job whose turn it is for longer than kHungAfter, and has said
  /// twice that it is not done. To be asked every kAskEvery by who waits. Any thread.
  bool hangs();

  /// Whole frames take milliseconds; as long as Windows gives a GPU (TdrDelay).
  static constexpr std::chrono::seconds kHungAfter{2};
  static constexpr std::chrono::milliseconds kAskEvery{100};

 private:
  struct Queue;
  static void run(Queue& queue);
  const std::shared_ptr<CudaContext> context_;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace framelane
