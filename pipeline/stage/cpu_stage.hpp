#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/converter.hpp"
#include "kernels/luma_histogram.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Converts a frame and counts the target's luma, each band of rows while the cache has it.
/// Requires has_luma(target.format). Any thread.
void convert_and_count(const Converter& converter, const ConstImageView& source,
                       const ImageView& target, LumaHistogram& luma);

/// An ordered queue of jobs: the CPU's counterpart of a CUDA stream. At most one worker serves a
/// lane at a time, so jobs of a lane run in order while lanes run side by side.
struct CpuLane;

/// The processor: as many worker threads as it has cores, serving the lanes of every feed in turn,
/// one job at a time, so that no feed starves another.
class CpuDevice : public Device, public std::enable_shared_from_this<CpuDevice> {
 public:
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

  const std::string name_ = "cpu";
  const std::string model_;
  const std::string uuid_;
  EngineMeters busy_;
  std::mutex mutex_;
  std::condition_variable runnable_changed_;
  CpuLane* first_ = nullptr;  // runnable lanes, an intrusive queue
  CpuLane* last_ = nullptr;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

/// Runs conversions on the CpuDevice's workers.
class CpuStage : public Stage {
 public:
  CpuStage(std::shared_ptr<CpuDevice> device, FeedStats& stats);
  /// Waits for the jobs that were accepted.
  ~CpuStage() override;

  PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory,
                  bool analyse) override;
  void submit(FrameJob& job) override;
  Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override;

 private:
  friend class CpuDevice;
  void run_next(CpuLane& lane);

  const std::shared_ptr<CpuDevice> device_;
  FeedStats& stats_;
  std::mutex mutex_;
  std::condition_variable_any converted_;
  int in_flight_ = 0;
  std::deque<CpuLane> lanes_;  // never resized: workers hold pointers
};

}  // namespace framelane
