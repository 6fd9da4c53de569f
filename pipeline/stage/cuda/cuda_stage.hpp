#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/stage/cuda/cuda_device.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Runs conversions on a GPU, for one feed. Each lane has up to kJobsInLane jobs on the GPU, so
/// that uploads, conversions and downloads of different jobs overlap; more jobs wait in a list.
///
/// If the device is lost, or a job fails or does not end, the jobs in flight run again on a CPU
/// stage inside this one, and so do all later jobs. No target in host memory is lost, if the
/// input is in host memory, because inputs are held until their outputs are complete. Frames that a
/// decoder left on the device, and targets there, are lost with it: a spare copy of each would cost
/// what leaving them there saves.
class CudaStage final : public Stage, private LaneOwner {
 public:
  /// `slices`: see Device::make_stage.
  CudaStage(std::shared_ptr<CudaDevice> device, FeedStats& stats, std::optional<int> slices);
  /// Blocks until all submitted jobs have ended; jobs that hang are moved to the CPU.
  ~CudaStage() override;

  BufferRef decode_context(std::string& why) override;
  BufferRef encode_context(std::string& why) override;
  bool takes_device_frames() override;
  bool still_takes_device_frames(const std::string& what) override;
  /// Throws FeedError(kMemory), with the amounts, if the GPU has not enough memory.
  PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory, bool analyse,
                  std::span<const FrameMemory> targets,
                  std::shared_ptr<const PictureMask> mask) override;
  void submit(FrameJob& job) override;
  /// Checks meanwhile whether the GPU hangs. If so, the GPU is lost and the job runs on the CPU,
  /// which is given the same time again as `deadline` gave.
  Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override;

 private:
  struct LaneState {
    std::shared_ptr<CudaLane> lane;
    // Guarded by mutex_.
    FrameJob* first = nullptr;  // jobs that wait for the lane
    FrameJob* last = nullptr;
    bool busy = false;
  };

  void completed(CudaLane& lane, FrameJob& job, bool good) noexcept override;
  BufferRef ffmpeg_context(BufferRef (*make)(std::shared_ptr<CudaContext>, std::string&),
                           std::string& why);
  void start(LaneState& lane, FrameJob& job);
  void run_on_cpu(FrameJob* jobs);
  void end_as_device_lost(FrameJob& job);
  static FrameJob* take_waiting(LaneState& lane);
  void abandon_if_hung();
  /// True if this feed gives nothing more to the GPU. Requires mutex_.
  bool off_gpu() const { return failed_ || context_->lost(); }

  const std::shared_ptr<CudaDevice> device_;
  const std::shared_ptr<CudaContext> context_;
  FeedStats& stats_;
  const std::shared_ptr<RingJobs> ring_jobs_;
  const std::optional<int> slices_;
  std::mutex mutex_;
  std::condition_variable_any changed_;  // a job has ended or moved to the CPU
  int in_flight_ = 0;
  bool failed_ = false;             // a job or a plan of this feed failed on the GPU
  std::atomic<bool> moved_{false};  // a job of this feed has run on the CPU
  std::vector<LaneState> lanes_;
  const std::unique_ptr<Stage> cpu_;
};

}  // namespace framelane
