#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "kernels/converter.hpp"
#include "kernels/luma_histogram.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Converts rows of a frame, of which the first is a multiple of 32, and adds the target's luma to
/// `luma`, band by band, while a band's rows are in the cache. Requires has_luma(target.format).
/// Any thread.
void convert_and_count(const Converter& converter, const ConstImageView& source,
                       const ImageView& target, const RowRange& rows, LumaHistogram& luma);

/// An ordered queue of jobs, as a CUDA stream is. At most one worker serves a lane at a time, so
/// the jobs of a lane run in order, and lanes run side by side.
struct CpuLane;
struct CpuPlan;

/// The processor. Its worker threads serve the lanes of all feeds in turn, one job at a time, so
/// that no feed starves another. Any thread may call. Outlives its stages.
class CpuDevice : public Device, public std::enable_shared_from_this<CpuDevice> {
 public:
  /// Starts `workers` threads, at least one. Throws std::system_error if one does not start.
  explicit CpuDevice(unsigned workers);
  ~CpuDevice() override;

  const std::string& name() const override { return name_; }
  const std::string& model() const override { return model_; }
  const std::string& uuid() const override { return uuid_; }
  bool has_copy_engines() const override { return false; }
  std::size_t memory_bytes() const override { return 0; }
  bool lost() const override { return false; }
  const EngineMeters& busy() const override { return busy_; }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override;

 private:
  friend class CpuStage;
  void enqueue(CpuLane& lane);
  void work();
  void stop_workers();

  const std::string name_ = "cpu";
  const std::string model_;
  const std::string uuid_;
  EngineMeters busy_;
  std::mutex mutex_;
  std::condition_variable runnable_changed_;
  CpuLane* first_ = nullptr;  // a queue of lanes that have jobs, linked through the lanes
  CpuLane* last_ = nullptr;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

/// Runs one feed's conversions on the CpuDevice's workers. See Stage for the threads.
class CpuStage : public Stage {
 public:
  CpuStage(std::shared_ptr<CpuDevice> device, FeedStats& stats);
  /// Blocks until all submitted jobs are done.
  ~CpuStage() override;

  PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory, bool analyse,
                  std::span<const FrameMemory> targets,
                  std::shared_ptr<const PictureMask> mask) override;
  void submit(FrameJob& job) override;
  Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override;

 private:
  friend class CpuDevice;
  void run_next(CpuLane& lane);
  PooledImage masked_copy(const CpuPlan& plan, const ConstImageView& source) noexcept;

  const std::shared_ptr<CpuDevice> device_;
  FeedStats& stats_;
  const std::shared_ptr<RingJobs> ring_jobs_;
  std::mutex mutex_;
  std::condition_variable_any converted_;
  int in_flight_ = 0;
  FramePool masked_;                      // copies of frames that are masked here
  std::atomic<bool> mask_failed_{false};  // and has been logged
  std::deque<CpuLane> lanes_;             // never resized, because workers have pointers into it
};

}  // namespace framelane
