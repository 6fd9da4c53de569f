#include "pipeline/cuda/completion_thread.hpp"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "pipeline/log.hpp"

namespace framelane {

struct CompletionThread::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<CudaLane> first;  // linked through the lanes: nothing is allocated per job
  CudaLane* last = nullptr;
  // What is being waited for, and since when.
  std::shared_ptr<const CudaPlan> plan;
  std::size_t lane_index = 0;
  std::chrono::steady_clock::time_point since;
  std::uint64_t turns = 0;
  // When hangs() first heard from the GPU that this turn's job is not done.
  std::uint64_t suspected_turn = 0;
  std::chrono::steady_clock::time_point suspected_at;
  bool stopping = false;
  bool ended = false;
};

CompletionThread::CompletionThread(std::shared_ptr<CudaContext> context)
    : context_(std::move(context)), queue_(std::make_shared<Queue>()) {
  // Detached, so that it can be left behind; `ended` is how to wait for it, and the last it does.
  std::thread([gpu = context_, queue = queue_]() mutable {
    pthread_setname_np(pthread_self(), "cuda-complete");
    try {
      gpu->make_current();
    } catch (const CudaError& error) {
      gpu->failed("waiting for the GPU", error);
    }
    run(*queue);
    gpu.reset();
    const std::lock_guard lock(queue->mutex);
    queue->ended = true;
    queue->changed.notify_all();
  }).detach();
}

CompletionThread::~CompletionThread() {
  Queue& queue = *queue_;
  std::unique_lock lock(queue.mutex);
  queue.stopping = true;
  queue.changed.notify_all();
  const auto ended = [&queue] { return queue.ended; };
  while (!queue.changed.wait_for(lock, std::chrono::seconds(1), ended)) {
    if (context_->abandoned_jobs == 0) continue;
    log::error("{}: work on the GPU does not come to an end; its memory is left behind",
               context_->name);
    return;
  }
}

void CompletionThread::watch(std::shared_ptr<CudaLane> lane) {
  Queue& queue = *queue_;
  {
    const std::lock_guard lock(queue.mutex);
    CudaLane* const added = lane.get();
    (queue.last != nullptr ? queue.last->next_ : queue.first) = std::move(lane);
    queue.last = added;
  }
  queue.changed.notify_all();
}

bool CompletionThread::hangs() {
  Queue& queue = *queue_;
  std::shared_ptr<const CudaPlan> plan;
  std::size_t index = 0;
  std::uint64_t turn = 0;
  {
    const std::lock_guard lock(queue.mutex);
    if (queue.plan == nullptr) return false;
    if (std::chrono::steady_clock::now() - queue.since < kHungAfter) return false;
    plan = queue.plan;
    index = queue.lane_index;
    turn = queue.turns;
  }
  // Time alone proves nothing: the whole process may have been stopped meanwhile, the GPU not. One
  // answer does not either: with the whole machine, the GPU was stopped too.
  context_->try_make_current();
  if (cudaEventQuery(plan->works[index]->done().get()) != cudaErrorNotReady) return false;
  const std::lock_guard lock(queue.mutex);
  if (queue.plan == nullptr || queue.turns != turn) return false;
  const auto now = std::chrono::steady_clock::now();
  if (queue.suspected_turn != turn) {
    queue.suspected_turn = turn;
    queue.suspected_at = now;
    return false;
  }
  return now - queue.suspected_at >= kAskEvery / 2;
}

void CompletionThread::run(Queue& queue) {
  for (;;) {
    std::shared_ptr<CudaLane> lane;
    {
      std::unique_lock lock(queue.mutex);
      queue.changed.wait(lock, [&queue] { return queue.first != nullptr || queue.stopping; });
      if (queue.first == nullptr) return;
      lane = std::move(queue.first);
      queue.first = std::move(lane->next_);
      if (queue.first == nullptr) queue.last = nullptr;
      queue.plan = lane->plan();
      queue.lane_index = lane->index;
      queue.since = std::chrono::steady_clock::now();
      ++queue.turns;
    }
    const bool good = lane->wait();
    {
      // Before the job is handed over: the lane may then start its next one, which uses the event
      // again that hangs() asks. The lane has the plan as well, so nothing is freed here.
      const std::lock_guard lock(queue.mutex);
      queue.plan.reset();
    }
    lane->hand_over(good);
  }
}

}  // namespace framelane
