#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "pipeline/stage/cuda/cuda_device.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Runs conversions on a GPU, for one feed. Each lane carries kJobsInLane jobs while others wait
/// for it, so that uploads, conversions and downloads of different jobs overlap.
///
/// When the device is lost, or a job fails or does not come to an end, the jobs in flight run again
/// on an inner stage of the fallback device, and so does everything after: inputs in host memory
/// stay there until their outputs are done, so none is dropped. Those that a decoder left on the
/// device are lost with it: a copy of each, in case, would cost what leaving them there saves.
class CudaStage final : public Stage, private LaneOwner {
 public:
  /// `slices`: see Device::make_stage.
  CudaStage(std::shared_ptr<CudaDevice> device, FeedStats& stats, std::optional<int> slices);
  /// Waits for the jobs that were accepted; those that hang are moved to the CPU first.
  ~CudaStage() override;

  BufferRef decode_context(std::string& why) override;
  bool takes_device_frames() override;
  /// Throws FeedError(kMemory), with the amounts, when the GPU's memory does not suffice.
  PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory,
                  bool analyse) override;
  void submit(FrameJob& job) override;
  /// Meanwhile finds out whether the GPU hangs: then it is lost, and the job is waited for on the
  /// CPU, for as long again as `deadline` gave.
  Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override;

 private:
  struct LaneState {
    std::shared_ptr<CudaLane> lane;  // one of the jobs of a lane
    // Guarded by mutex_.
    FrameJob* first = nullptr;  // jobs that wait for the lane
    FrameJob* last = nullptr;
    bool busy = false;
  };

  void completed(CudaLane& lane, FrameJob& job, bool good) noexcept override;
  void start(LaneState& lane, FrameJob& job);
  void run_on_cpu(FrameJob* jobs);
  void give_up(FrameJob& job);
  static FrameJob* take_waiting(LaneState& lane);
  void abandon_if_hung();
  /// Whether nothing more of this feed goes to the GPU. Requires mutex_.
  bool off_gpu() const { return failed_ || context_->lost(); }

  const std::shared_ptr<CudaDevice> device_;
  const std::shared_ptr<CudaContext> context_;
  FeedStats& stats_;
  const std::optional<int> slices_;
  std::mutex mutex_;
  std::condition_variable_any changed_;  // a job is ready or has moved, or none is left
  int in_flight_ = 0;
  bool failed_ = false;             // the GPU could not do one of the jobs, whatever others can
  std::atomic<bool> moved_{false};  // some job has run on the CPU
  std::vector<LaneState> lanes_;
  const std::unique_ptr<Stage> cpu_;
};

}  // namespace framelane
