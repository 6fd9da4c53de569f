#include "pipeline/stage/cuda/completion_thread.hpp"

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {

struct CompletionThread::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<CudaLane> first;  // linked through the lanes: nothing is allocated per job
  CudaLane* last = nullptr;
  // The thread's present turn, and since when: it waits for a job of `plan`; or, if that is null,
  // it hands a job over or is idle.
  std::shared_ptr<const CudaPlan> plan;
  std::size_t lane_index = 0;
  bool handing_over = false;
  std::chrono::steady_clock::time_point since;
  std::uint64_t turns = 0;
  // When hangs() first found this turn to take too long.
  std::uint64_t suspected_turn = 0;
  std::chrono::steady_clock::time_point suspected_at;
  bool stopping = false;
  bool ended = false;
  AbandonableThread abandonable{};

  /// Requires the mutex.
  void take_turn(const CudaLane* lane, bool hands_over) {
    plan = lane != nullptr ? lane->plan() : nullptr;
    lane_index = lane != nullptr ? lane->index : 0;
    handing_over = hands_over;
    since = std::chrono::steady_clock::now();
    ++turns;
  }
};

CompletionThread::CompletionThread(std::shared_ptr<CudaContext> context,
                                   std::chrono::milliseconds hung_after)
    : context_(std::move(context)), hung_after_(hung_after), queue_(std::make_shared<Queue>()) {
  // Detached, so that it can be left behind. Setting `ended`, which the destructor waits for, is
  // the last thing it does.
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
    queue->abandonable.end();
  }).detach();
}

CompletionThread::~CompletionThread() {
  Queue& queue = *queue_;
  std::unique_lock lock(queue.mutex);
  queue.stopping = true;
  queue.changed.notify_all();
  const auto ended = [&queue] { return queue.ended; };
  while (!queue.changed.wait_for(lock, std::chrono::seconds(1), ended)) {
    if (!context_->has_abandoned_jobs()) {
      lock.unlock();
      const bool hung = hangs();
      lock.lock();
      if (!hung) continue;
    }
    log::error("{}: work on the GPU does not come to an end; its memory is left behind",
               context_->name());
    queue.abandonable.abandon();
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
    if (queue.plan == nullptr && !queue.handing_over) return false;
    if (std::chrono::steady_clock::now() - queue.since < hung_after_) return false;
    plan = queue.plan;
    index = queue.lane_index;
    turn = queue.turns;
  }
  // Time alone proves nothing: the process may have been stopped while the GPU worked. Nor does one
  // answer: the whole machine, with the GPU, may have been stopped.
  context_->try_make_current();
  if (plan != nullptr && cudaEventQuery(plan->works[index]->done().get()) != cudaErrorNotReady) {
    return false;
  }
  const std::lock_guard lock(queue.mutex);
  if (queue.turns != turn) return false;
  const auto now = std::chrono::steady_clock::now();
  if (queue.suspected_turn != turn) {
    queue.suspected_turn = turn;
    queue.suspected_at = now;
    return false;
  }
  // A call that blocks cannot be queried. If it blocks for as long again, that is its second
  // answer.
  return now - queue.suspected_at >= (plan != nullptr ? kAskEvery / 2 : hung_after_);
}

void CompletionThread::run(Queue& queue) {
  EventWait::prepare_thread();
  EventWait waiting;
  for (;;) {
    std::shared_ptr<CudaLane> lane;
    {
      std::unique_lock lock(queue.mutex);
      queue.take_turn(nullptr, false);
      queue.changed.wait(lock, [&queue] { return queue.first != nullptr || queue.stopping; });
      if (queue.first == nullptr) return;
      lane = std::move(queue.first);
      queue.first = std::move(lane->next_);
      if (queue.first == nullptr) queue.last = nullptr;
      queue.take_turn(lane.get(), false);
    }
    const bool good = lane->wait(waiting);
    {
      // This must come before hand_over, in which the lane may start its next job: that job uses
      // again the event that hangs() queries. Nothing is freed here, as the lane holds the plan
      // too.
      const std::lock_guard lock(queue.mutex);
      queue.take_turn(nullptr, true);
    }
    lane->hand_over(good);
  }
}

}  // namespace framelane
