#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "pipeline/stage/cuda/cuda_plan.hpp"

namespace framelane {

class CudaLane;

/// Who gave a job to a lane: told, on the completion thread, when it is through. `good`: every
/// target is complete; otherwise the GPU has not done it and does not touch it any more.
class LaneOwner {
 public:
  virtual void completed(CudaLane& lane, FrameJob& job, bool good) noexcept = 0;

 protected:
  ~LaneOwner() = default;
};

/// Carries one job at a time through a lane: has it copied up (unless it is there), converted, and
/// the results copied back. kJobsInLane of them share a lane and its memory: the GPU begins with
/// the one's job when the other's needs that no more. Shared by its stage and, while it works, the
/// completion thread; it may outlive the stage when a GPU hangs.
class CudaLane {
 public:
  /// `index`: of CudaPlan::works. `owner` and `stats` must stay until the lane's job is through or
  /// abandoned.
  CudaLane(std::shared_ptr<CudaContext> context, LaneOwner& owner, FeedStats& stats,
           std::size_t index);
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;

  const std::size_t index;

  /// Queues all of a job's work and returns. Waits for nothing that the GPU does, but for whoever
  /// else is queueing a job, and so for the calls of theirs that a hung GPU holds up. Requires a
  /// plan with lanes, and that the last job is through. After a call that fails the job will not be
  /// good.
  void start(const FrameJob& job) noexcept;
  /// Makes the started job one that may be taken. To be followed by CompletionThread::watch.
  void carry(FrameJob& job) { job_ = &job; }
  /// Takes the job from a GPU that does not end it. The GPU may still read the job's input and
  /// write its targets: the context keeps them and the completion thread the lane until the GPU
  /// lets go, and a job that can run again gets other targets. Null when the job is through.
  FrameJob* abandon();

  // Of the completion thread.

  /// The plan of the job that the lane works at.
  const std::shared_ptr<const CudaPlan>& plan() const { return plan_; }
  /// Waits for the work to end; whether it has done what it was to.
  bool wait() noexcept;
  /// Books the work's times in the meters and histograms and tells the owner, who may start() the
  /// next job.
  void hand_over(bool good) noexcept;

 private:
  friend class CompletionThread;
  void queue(const FrameJob& job);
  std::span<const int> queue_upload(const LaneWork& work, const LaneWork& other,
                                    const ConstImageView& from, const ImageView& to);
  void end_queue();
  void account(const LaneWork& work, DeviceClock::Clock::time_point seen) noexcept;

  const std::shared_ptr<CudaContext> context_;
  LaneOwner& owner_;
  FeedStats& stats_;
  const std::string subject_;  // for messages
  std::atomic<FrameJob*> job_{nullptr};
  // Of whoever has the lane: the thread that starts a job, then the completion thread.
  std::shared_ptr<const CudaPlan> plan_;
  DeviceClock::Clock::time_point started_at_;
  std::span<const CudaSlice> slices_;  // of the plan: the last ones, as many as the job is cut in
  bool queued_whole_ = false;
  bool done_comes_ = false;         // the last event stands for the end of all that was queued
  std::shared_ptr<CudaLane> next_;  // of the completion thread's queue
};

}  // namespace framelane
