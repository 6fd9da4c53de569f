#pragma once

#include <chrono>
#include <memory>

#include "pipeline/stage/cuda/cuda_lane.hpp"

namespace framelane {

/// The one thread of a GPU that waits for its jobs. It takes lanes in the order in which their jobs
/// were queued, which is about the order in which the jobs end.
class CompletionThread {
 public:
  /// A job that runs for longer than `hung_after` may hang. A whole frame takes milliseconds.
  CompletionThread(std::shared_ptr<CudaContext> context, std::chrono::milliseconds hung_after);
  /// Blocks until every job has ended. If the GPU has abandoned jobs, or is found to hang, the
  /// thread is left behind after about a second, together with the lanes it waits for.
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  /// Has the thread call lane->wait() and then lane->hand_over(). Returns at once. Any thread.
  void watch(std::shared_ptr<CudaLane> lane);
  /// True if the oldest job has run for longer than hung_after and two event queries have said that
  /// it is not done; or if handing a job over has blocked for twice as long, because a CUDA call
  /// that queues the lane's next job does not return. Whoever waits for a job asks every kAskEvery.
  /// Any thread.
  bool hangs();

  static constexpr std::chrono::milliseconds kAskEvery{100};

 private:
  struct Queue;
  static void run(Queue& queue);
  const std::shared_ptr<CudaContext> context_;
  const std::chrono::milliseconds hung_after_;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace framelane
