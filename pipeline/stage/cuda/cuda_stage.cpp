#include "pipeline/stage/cuda/cuda_stage.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/stage/cuda/av_device.hpp"

namespace framelane {
namespace {

std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + 0xFFFFF) >> 20) + " MiB";
}

}  // namespace

CudaStage::CudaStage(std::shared_ptr<CudaDevice> device, FeedStats& stats,
                     std::optional<int> slices)
    : device_(std::move(device)),
      context_(device_->context()),
      stats_(stats),
      ring_jobs_(stats.ring_jobs()),
      slices_(slices),
      lanes_(kJobsInLane * stats.lanes().size()),
      cpu_(device_->cpu().make_stage(stats, slices)) {
  assert(!lanes_.empty());
  LaneOwner& owner = *this;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].lane = std::make_shared<CudaLane>(context_, owner, stats, i);
  }
}

CudaStage::~CudaStage() {
  const auto none_left = [this] { return in_flight_ == 0; };
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, CompletionThread::kAskEvery, none_left)) {
    lock.unlock();
    abandon_if_hung();
    lock.lock();
  }
}

BufferRef CudaStage::decode_context(std::string& why) {
  return ffmpeg_context(make_decode_context, why);
}

BufferRef CudaStage::encode_context(std::string& why) {
  return ffmpeg_context(make_encode_context, why);
}

BufferRef CudaStage::ffmpeg_context(BufferRef (*make)(std::shared_ptr<CudaContext>, std::string&),
                                    std::string& why) {
  if (!takes_device_frames()) {
    why = "the feed has left the GPU";
    return {};
  }
  try {
    return make(context_, why);
  } catch (const CudaError& error) {
    context_->failed("feed " + stats_.feed(), error);
    why = error.what();
    return {};
  }
}

bool CudaStage::takes_device_frames() {
  const std::lock_guard lock(mutex_);
  return !off_gpu();
}

bool CudaStage::still_takes_device_frames(const std::string& what) {
  context_->lose_if_broken("feed " + stats_.feed() + ": " + what);
  return takes_device_frames();
}

PlanRef CudaStage::prepare(std::span<const Conversion> conversions, FrameMemory memory,
                           bool analyse, std::span<const FrameMemory> targets,
                           std::shared_ptr<const PictureMask> mask) {
  auto plan = std::make_shared<CudaPlan>(memory == FrameMemory::kHost
                                             ? cpu_->prepare(conversions, memory, analyse, {}, mask)
                                             : nullptr);
  {
    const std::lock_guard lock(mutex_);
    if (off_gpu()) return plan;
  }
  const std::size_t lanes = lanes_.size() / kJobsInLane;
  try {
    context_->make_current();
    plan->allocate(context_, conversions, memory, analyse, targets, mask.get(), lanes, slices_);
  } catch (const CudaError& error) {
    if (error.code() == cudaErrorMemoryAllocation) {
      throw FeedError(FeedFault::kMemory,
                      context_->name() + " has no room for the feed's frames: " +
                          mebibytes(plan_bytes(conversions, memory, lanes, targets)) +
                          " are needed for " + std::to_string(lanes) + " lanes, with " +
                          context_->free_memory() + "; use fewer lanes or feeds");
    }
    context_->failed("feed " + stats_.feed(), error);
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  return plan;
}

void CudaStage::submit(FrameJob& job) {
  LaneState& lane = lanes_[job.sequence % lanes_.size()];
  const bool prepared = !static_cast<const CudaPlan&>(*job.plan).works.empty();
  bool on_cpu = false;
  job.next_in_lane = nullptr;
  ++(*ring_jobs_)[index_of(RingState::kConverting)];
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
    // Asked under the lock: whoever moves the waiting jobs of a lost device finds all of them.
    on_cpu = !prepared || off_gpu();
    if (!on_cpu && std::exchange(lane.busy, true)) {
      (lane.last != nullptr ? lane.last->next_in_lane : lane.first) = &job;
      lane.last = &job;
      return;
    }
  }
  if (on_cpu) {
    run_on_cpu(&job);
  } else {
    start(lane, job);
  }
}

/// Gives a job to its lane, which must be free.
void CudaStage::start(LaneState& state, FrameJob& job) {
  state.lane->start(job);
  // Once the lock is released, the job may be abandoned and done elsewhere, and the stage
  // destroyed.
  const std::lock_guard lock(mutex_);
  state.lane->carry(job);
  device_->completion().watch(state.lane);
}

FrameJob* CudaStage::take_waiting(LaneState& lane) {
  lane.last = nullptr;
  return std::exchange(lane.first, nullptr);
}

void CudaStage::completed(CudaLane& lane, FrameJob& job, bool good) noexcept {
  LaneState& state = lanes_[lane.index];
  if (good) {
    --(*ring_jobs_)[index_of(RingState::kConverting)];
    ++(*ring_jobs_)[index_of(RingState::kReady)];
  }
  FrameJob* next = nullptr;
  FrameJob* to_cpu = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!good) failed_ = true;
    if (off_gpu()) {
      to_cpu = take_waiting(state);
      state.busy = false;
    } else if (state.first != nullptr) {
      next = state.first;
      state.first = std::exchange(next->next_in_lane, nullptr);
      if (state.first == nullptr) state.last = nullptr;
    } else {
      state.busy = false;
    }
    if (good) {
      // From here on the job may be gone; and the stage too, once no job is in flight and the lock
      // is released.
      job.converted.store(true, std::memory_order_release);
      --in_flight_;
      changed_.notify_all();
    }
  }
  if (!good) {
    job.next_in_lane = to_cpu;
    to_cpu = &job;
  }
  if (next != nullptr) start(state, *next);
  if (to_cpu != nullptr) run_on_cpu(to_cpu);
}

/// Ends a job whose input was lost with the GPU. The stage may be gone when it returns.
void CudaStage::end_as_device_lost(FrameJob& job) {
  context_->hold_until_idle(job.input.buffer);  // giving it back to the decoder waits for the GPU
  --(*ring_jobs_)[index_of(RingState::kConverting)];
  ++(*ring_jobs_)[index_of(RingState::kReady)];
  const std::lock_guard lock(mutex_);
  job.device_lost = true;
  --in_flight_;
  changed_.notify_all();
}

/// Moves a list of jobs to the CPU. The stage may be gone when it returns.
void CudaStage::run_on_cpu(FrameJob* jobs) {
  if (!moved_.exchange(true)) {
    stats_.set_device(device_->cpu().name());
    if (!context_->lost()) {
      log::error("feed {}: goes on on the CPU, until it is started again", stats_.feed());
    }
  }
  while (jobs != nullptr) {
    FrameJob& job = *jobs;
    jobs = job.next_in_lane;
    if (job.input.memory == FrameMemory::kDevice) {
      end_as_device_lost(job);
      continue;
    }
    for (JobOutput& output : job.outputs) {
      if (output.memory == FrameMemory::kDevice) output.target = {};
    }
    const PlanRef plan = std::exchange(job.plan, static_cast<const CudaPlan&>(*job.plan).on_cpu);
    --(*ring_jobs_)[index_of(RingState::kConverting)];  // the CPU stage counts it again
    {
      const std::lock_guard lock(mutex_);
      job.on_fallback = true;
      changed_.notify_all();
    }
    cpu_->submit(job);
    const std::lock_guard lock(mutex_);
    --in_flight_;
    changed_.notify_all();
  }
}

/// If the GPU is lost or hangs, moves all jobs of this feed that it has to the CPU.
void CudaStage::abandon_if_hung() {
  if (!context_->lost()) {
    if (!device_->completion().hangs()) return;
    context_->lose("feed " + stats_.feed() + ": a job does not come to an end",
                   CudaContext::Loss::kOther);
  }
  FrameJob* jobs = nullptr;
  const auto push = [&jobs](FrameJob* list) {
    while (list != nullptr) {
      FrameJob* const job = std::exchange(list, list->next_in_lane);
      job->next_in_lane = std::exchange(jobs, job);
    }
  };
  {
    const std::lock_guard lock(mutex_);
    for (LaneState& state : lanes_) {
      push(take_waiting(state));
      FrameJob* const job = state.lane->abandon();
      if (job == nullptr) continue;
      job->next_in_lane = nullptr;
      push(job);
    }
  }
  if (jobs != nullptr) run_on_cpu(jobs);
}

Stage::Wait CudaStage::wait(FrameJob& job, std::stop_token stop, Deadline deadline) {
  using Clock = std::chrono::steady_clock;
  const auto given = std::min<Clock::duration>(deadline - Clock::now(), std::chrono::hours(1));
  if (job.converted.load(std::memory_order_acquire)) return Wait::kReady;
  if (job.device_lost) return Wait::kDeviceLost;
  if (job.on_fallback) return cpu_->wait(job, stop, deadline);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const Deadline pause = std::min(deadline, Clock::now() + CompletionThread::kAskEvery);
      changed_.wait_until(lock, stop, pause, [&job] {
        return job.converted.load(std::memory_order_relaxed) || job.on_fallback || job.device_lost;
      });
      if (job.converted.load(std::memory_order_acquire)) return Wait::kReady;
    }
    if (!job.on_fallback && !job.device_lost) {
      if (stop.stop_requested()) return Wait::kStopped;
      abandon_if_hung();
    }
    if (job.device_lost) return Wait::kDeviceLost;
    // The CPU only begins now, so it is given the whole time.
    if (job.on_fallback) return cpu_->wait(job, stop, Clock::now() + given);
    if (Clock::now() >= deadline) return Wait::kLate;
  }
}

}  // namespace framelane
