#include "pipeline/stage/cpu_stage.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <utility>

#include "kernels/converter.hpp"
#include "kernels/overlay.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/processors.hpp"

namespace framelane {

struct CpuPlan : Plan {
  struct Target {
    std::unique_ptr<const Converter> converter;  // null: bypass
    RowRange masked_rows;                        // that are made of the masked copy
  };
  std::vector<Target> targets;
  bool analyse = false;
  std::shared_ptr<const PictureMask> mask;
  RowRange copied_rows;  // of the source: all that masked_rows are made of, and the mask's
};

namespace {

/// Rows that are made at once begin and end at multiples of this: fewer would have the scaler read
/// more rows of the source twice.
constexpr int kBandRows = 32;

std::string processor_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

/// Makes what a job is to have of one target's rows, without overlays.
void convert_rows(const CpuPlan& plan, std::size_t i, const ConstImageView& source,
                  const RowRange& rows, FrameJob& job) {
  if (rows.empty()) return;
  const ImageView& target = job.outputs[i].target.image;
  if (plan.analyse && i == 0) {
    convert_and_count(*plan.targets[i].converter, source, target, rows, job.luma);
  } else {
    plan.targets[i].converter->run(source, target, rows.begin, rows.end);
  }
}

/// Makes all that a job is to have. `masked`: a copy that is masked, of the plan's copied_rows;
/// null: nothing is masked.
void convert(const CpuPlan& plan, const ConstImageView* masked, FrameJob& job) {
  if (plan.analyse) job.luma = {};
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    const CpuPlan::Target& made = plan.targets[i];
    if (made.converter == nullptr || !job.outputs[i].target.buffer) continue;
    const ImageView& target = job.outputs[i].target.image;
    const RowRange of_copy = masked != nullptr ? made.masked_rows : RowRange{};
    convert_rows(plan, i, job.input.image, {0, of_copy.begin}, job);
    if (!of_copy.empty()) convert_rows(plan, i, *masked, of_copy, job);
    convert_rows(plan, i, job.input.image, {of_copy.end, target.height}, job);
    if (job.outputs[i].overlays == nullptr) continue;
    for (const auto& overlay : *job.outputs[i].overlays) blend(*overlay, target, 0, target.height);
  }
}

/// The rows of a target that a mask may show in: from a multiple of kBandRows to one, or to the
/// end.
RowRange masked_rows(const Conversion& conversion, const PictureMask& mask) {
  const int height = conversion.target_size().height;
  RowRange masked;
  for (int y = 0; y < height; y += kBandRows) {
    const RowRange band{y, std::min(y + kBandRows, height)};
    const RowRange from = source_rows(conversion, band);
    if (from.begin >= mask.rows().end || mask.rows().begin >= from.end) continue;
    if (masked.empty()) masked.begin = band.begin;
    masked.end = band.end;
  }
  return masked;
}

/// Copies these rows, which begin with a row of chroma.
PooledImage copy_rows(FramePool& pool, const ConstImageView& image, const RowRange& rows) {
  PooledImage copy = allocate_image(pool, image.format, image.width, image.height);
  for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
    const std::size_t bytes = plane_row_bytes(image.format, plane, image.width);
    const int end = plane_rows(image.format, plane, rows.end);
    for (int y = plane_rows(image.format, plane, rows.begin); y < end; ++y) {
      std::memcpy(copy.image.row(plane, y), image.row(plane, y), bytes);
    }
  }
  return copy;
}

}  // namespace

void convert_and_count(const Converter& converter, const ConstImageView& source,
                       const ImageView& target, const RowRange& rows, LumaHistogram& luma) {
  constexpr int kBandSamples = 1 << 16;
  const int step = std::max(kBandSamples / target.width / kBandRows, 1) * kBandRows;
  for (int y = rows.begin; y < rows.end; y += step) {
    const int end = std::min(y + step, rows.end);
    converter.run(source, target, y, end);
    count_luma(as_const(target), y, end, luma);
  }
}

struct CpuLane {
  CpuLane(CpuStage& owner, std::shared_ptr<LaneStats> lane_stats)
      : stage(owner), stats(std::move(lane_stats)) {}

  CpuStage& stage;
  const std::shared_ptr<LaneStats> stats;
  // Guarded by the stage's mutex.
  FrameJob* first = nullptr;
  FrameJob* last = nullptr;
  bool scheduled = false;  // in the device's queue, or served by a worker
  // Guarded by the device's mutex.
  CpuLane* next_runnable = nullptr;
};

CpuDevice::CpuDevice(unsigned workers) : model_(processor_model()) {
  try {
    for (unsigned i = 0; i < std::max(workers, 1u); ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {
    stop_workers();
    throw;
  }
}

CpuDevice::~CpuDevice() { stop_workers(); }

void CpuDevice::stop_workers() {
  {
    const std::lock_guard lock(mutex_);
    assert(first_ == nullptr && "a device must outlive its stages");
    stopping_ = true;
  }
  runnable_changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

std::unique_ptr<Stage> CpuDevice::make_stage(FeedStats& stats, std::optional<int> /*slices*/) {
  return std::make_unique<CpuStage>(shared_from_this(), stats);
}

void CpuDevice::enqueue(CpuLane& lane) {
  {
    const std::lock_guard lock(mutex_);
    lane.next_runnable = nullptr;
    (last_ != nullptr ? last_->next_runnable : first_) = &lane;
    last_ = &lane;
  }
  runnable_changed_.notify_one();
}

void CpuDevice::work() {
  for (;;) {
    CpuLane* lane = nullptr;
    {
      std::unique_lock lock(mutex_);
      runnable_changed_.wait(lock, [this] { return first_ != nullptr || stopping_; });
      if (first_ == nullptr) return;
      lane = first_;
      first_ = lane->next_runnable;
      if (first_ == nullptr) last_ = nullptr;
    }
    lane->stage.run_next(*lane);
  }
}

CpuStage::CpuStage(std::shared_ptr<CpuDevice> device, FeedStats& stats)
    : device_(std::move(device)), stats_(stats), ring_jobs_(stats.ring_jobs()) {
  for (auto& lane_stats : stats.lanes()) lanes_.emplace_back(*this, std::move(lane_stats));
  assert(!lanes_.empty());
}

CpuStage::~CpuStage() {
  std::unique_lock lock(mutex_);
  converted_.wait(lock, [this] { return in_flight_ == 0; });
}

PlanRef CpuStage::prepare(std::span<const Conversion> conversions,
                          [[maybe_unused]] FrameMemory memory, bool analyse,
                          std::span<const FrameMemory> /*targets*/,
                          std::shared_ptr<const PictureMask> mask) {
  assert(memory == FrameMemory::kHost);
  assert(!analyse || has_luma(conversions.front().target));
  auto plan = std::make_shared<CpuPlan>();
  plan->analyse = analyse;
  plan->mask = std::move(mask);
  for (const Conversion& conversion : conversions) {
    assert(!why_unsupported(conversion) || is_identity(conversion));
    plan->targets.emplace_back();
    if (is_bypass(conversion)) continue;
    CpuPlan::Target& target = plan->targets.back();
    target.converter = Converter::make(conversion);
    if (plan->mask == nullptr) continue;
    target.masked_rows = masked_rows(conversion, *plan->mask);
    if (target.masked_rows.empty()) continue;
    const RowRange from = source_rows(conversion, target.masked_rows);
    RowRange& copied = plan->copied_rows;
    if (copied.empty()) copied = plan->mask->rows();
    copied.begin = std::min(copied.begin, from.begin) / 2 * 2;
    copied.end = std::max(copied.end, from.end);
  }
  return plan;
}

void CpuStage::submit(FrameJob& job) {
  CpuLane& lane = lanes_[job.sequence % lanes_.size()];
  job.next_in_lane = nullptr;
  ++(*ring_jobs_)[index_of(RingState::kConverting)];
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
    (lane.last != nullptr ? lane.last->next_in_lane : lane.first) = &job;
    lane.last = &job;
    if (lane.scheduled) return;
    lane.scheduled = true;
  }
  device_->enqueue(lane);
}

/// A copy of the plan's copied_rows, masked; without a buffer if there is no memory for it.
PooledImage CpuStage::masked_copy(const CpuPlan& plan, const ConstImageView& source) noexcept {
  try {
    PooledImage copy = copy_rows(masked_, source, plan.copied_rows);
    plan.mask->apply(copy.image);
    return copy;
  } catch (const std::exception& error) {
    if (!mask_failed_.exchange(true)) {
      log::error("feed {}: a frame cannot be masked, which ends the feed: {}", stats_.feed(),
                 error.what());
    }
    return {};
  }
}

void CpuStage::run_next(CpuLane& lane) {
  FrameJob* job = nullptr;
  {
    const std::lock_guard lock(mutex_);
    job = lane.first;
    lane.first = job->next_in_lane;
    if (lane.first == nullptr) lane.last = nullptr;
  }
  const auto start = BusyMeter::Clock::now();
  lane.stats->busy.begin(Engine::kKernel, start);
  device_->busy_.begin(Engine::kKernel, start);
  const auto& plan = static_cast<const CpuPlan&>(*job->plan);
  if (!job->masks || plan.copied_rows.empty()) {
    convert(plan, nullptr, *job);
  } else if (const PooledImage masked = masked_copy(plan, job->input.image); masked.buffer) {
    stats_.count(HostCopy::kMask);
    const ConstImageView image = as_const(masked.image);
    convert(plan, &image, *job);
  } else {
    for (JobOutput& output : job->outputs) output.target = {};  // which ends the feed
  }
  const auto end = BusyMeter::Clock::now();
  device_->busy_.end(Engine::kKernel, end);
  lane.stats->busy.end(Engine::kKernel, end);
  lane.stats->trace.slice(TraceKind::kKernel, start, end, job->input.time_us);
  stats_.observe(StageStep::kKernel, end - start);
  --(*ring_jobs_)[index_of(RingState::kConverting)];
  ++(*ring_jobs_)[index_of(RingState::kReady)];

  // Once `converted` is set the job may be gone. Once in_flight_ is 0 and the lock is released the
  // stage may be gone too, so nothing of it may be used after this block.
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    job->converted.store(true, std::memory_order_release);
    more = lane.first != nullptr;
    lane.scheduled = more;
    if (more) device_->enqueue(lane);
    --in_flight_;
    converted_.notify_all();
  }
}

Stage::Wait CpuStage::wait(FrameJob& job, std::stop_token stop, Deadline deadline) {
  if (job.converted.load(std::memory_order_acquire)) return Wait::kReady;
  std::unique_lock lock(mutex_);
  const bool ready = converted_.wait_until(
      lock, stop, deadline, [&job] { return job.converted.load(std::memory_order_relaxed); });
  if (ready) return Wait::kReady;
  return stop.stop_requested() ? Wait::kStopped : Wait::kLate;
}

std::shared_ptr<Device> make_cpu_device() {
  return std::make_shared<CpuDevice>(static_cast<unsigned>(processors()));
}

}  // namespace framelane
