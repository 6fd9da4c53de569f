#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/overlay.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"
#include "pipeline/stage/cuda/event_wait.hpp"

namespace framelane {

class CudaLane;

/// Whoever gives jobs to a lane.
class LaneOwner {
 public:
  /// The lane's job has ended. `good`: every target is complete; otherwise the GPU did not do the
  /// job, and does not touch its frames any more. Completion thread.
  virtual void completed(CudaLane& lane, FrameJob& job, bool good) noexcept = 0;

 protected:
  ~LaneOwner() = default;
};

/// Carries one job at a time through the GPU: queues the upload (unless the frame is there
/// already), the conversions and the downloads. kJobsInLane objects of this class share the memory
/// of one lane: the next job starts as soon as the previous one no longer needs the shared buffers.
/// Its stage and, while it has a job, the completion thread share the ownership, so that it
/// outlives the stage if the GPU hangs.
class CudaLane {
 public:
  /// `index`: into CudaPlan::works. `owner` and `stats` must live until the lane's job has ended or
  /// was abandoned.
  CudaLane(std::shared_ptr<CudaContext> context, LaneOwner& owner, FeedStats& stats,
           std::size_t index);
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;

  const std::size_t index;

  /// Queues all of a job's work. Does not wait for the GPU, but blocks while another thread queues
  /// a job (CudaContext::enter_copy_gate). Requires a plan with lanes, and that the last job has
  /// ended. If a call fails, the job will end as not good. One thread at a time.
  void start(const FrameJob& job) noexcept;
  /// From now on abandon() may take the started job. To be followed by CompletionThread::watch.
  void carry(FrameJob& job) { job_ = &job; }
  /// Takes the job from a GPU that does not end it; null if it has ended. The GPU may still read
  /// the job's input and write its targets: until it ends the job after all, the context holds
  /// these frames and the completion thread the lane. A job that can run again gets new targets.
  /// Any thread.
  FrameJob* abandon();

  // Completion thread only.

  /// The plan of the present job.
  const std::shared_ptr<const CudaPlan>& plan() const { return plan_; }
  /// Blocks until the job has ended; true if it is good.
  bool wait(EventWait& waiting) noexcept;
  /// Books the job's times in the meters and histograms and tells the owner, who may start() the
  /// next job. If the job was abandoned, tells only the context.
  void hand_over(bool good) noexcept;

 private:
  friend class CompletionThread;
  void queue(const FrameJob& job);
  std::span<const int> queue_upload(StreamRef upload, const LaneWork& work, const LaneWork& other,
                                    const ConstImageView& from, const ImageView& to, bool masks);
  void copy_overlays(const FrameJob& job, LaneWork& work);
  std::shared_ptr<const DeviceOverlays> copied_up(
      const Overlays& wanted, const std::shared_ptr<const DeviceOverlays>& present) const;
  void end_queue();
  ImageView target_of(const JobOutput& output, std::size_t t) const;
  void queue_conversion(const JobOutput& output, std::size_t t, const ConstImageView& source,
                        StreamRef kernels);
  void queue_overlays(const FrameJob& job, StreamRef kernels);
  void account(const LaneWork& work, const FrameJob& job, bool downloads,
               DeviceClock::Clock::time_point seen) noexcept;

  const std::shared_ptr<CudaContext> context_;
  LaneOwner& owner_;
  FeedStats& stats_;
  const std::vector<std::shared_ptr<LaneStats>> lanes_;  // of the feed
  const std::string subject_;                            // for messages
  std::atomic<FrameJob*> job_{nullptr};
  // Used by one thread at a time: the one that starts a job, then the completion thread.
  std::shared_ptr<const CudaPlan> plan_;
  DeviceClock::Clock::time_point started_at_;
  std::span<const CudaSlice> slices_;  // the last ones of the plan's, one for each of the job's
  std::vector<RowRange> rows_;         // by target: those that are being queued
  std::vector<CudaDrawing> drawings_;  // on these
  bool queued_whole_ = false;
  bool done_comes_ = false;         // the last event is recorded behind everything that was queued
  std::shared_ptr<CudaLane> next_;  // in the completion thread's queue
};

}  // namespace framelane
