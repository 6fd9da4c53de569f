#pragma once

#include <chrono>
#include <memory>

#include "pipeline/stage/cuda/cuda_lane.hpp"

namespace framelane {

/// The one thread of a GPU that waits for its work, lane by lane in the order in which the jobs
/// were queued, which is about the order in which they end.
class CompletionThread {
 public:
  explicit CompletionThread(std::shared_ptr<CudaContext> context);
  /// Ends when nothing is left to wait for. The thread of a GPU that hangs is left to itself, with
  /// what it waits for: a second after jobs were taken from it, or when it is found to hang.
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  /// Will call lane->wait() and hand_over(). Any thread; waits for neither.
  void watch(std::shared_ptr<CudaLane> lane);
  /// Whether the GPU has been at the job whose turn it is for longer than kHungAfter, and has said
  /// twice that it is not done; or a job that is through has been handed over for twice as long,
  /// which is when a call that queues the lane's next one does not end. To be asked every kAskEvery
  /// by who waits. Any thread.
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
