#include "pipeline/stage/cuda/cuda_context.hpp"

#include <algorithm>

#include "pipeline/base/log.hpp"
#include "pipeline/frames/frame_job.hpp"
#include "pipeline/stage/device_choice.hpp"
#include "pipeline/stage/lost_gpus.hpp"

namespace framelane {
namespace {

/// Makes the GPU current, with the flag that lets waiting threads sleep. FFmpeg's decoders share a
/// context only if it has this flag.
int prepared(int ordinal) {
  cuda::check(cudaInitDevice(ordinal, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid),
              "cudaInitDevice");
  cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
  return ordinal;
}

}  // namespace

CudaContext::CudaContext(int ordinal) : name_(gpu_name(prepared(ordinal))), ordinal_(ordinal) {}

CudaContext::~CudaContext() {
  if (lost_) forget_lost_gpu(name_);
  try_make_current();
}

void CudaContext::make_current() const { cuda::check(cudaSetDevice(ordinal_), "cudaSetDevice"); }

void CudaContext::drain_jobs() const noexcept {
  cudaStreamSynchronize(upload_stream_.get());
  cudaStreamSynchronize(kernel_stream_.get());
  cudaStreamSynchronize(download_stream_.get());
}

void CudaContext::publish_allocations(FrameMemory frames) {
  const CudaEvent allocated(CudaEvent::Kind::kOrder);
  allocated.record(memory_stream_);
  if (frames == FrameMemory::kHost) {
    enter_copy_gate().uploads().wait(allocated.get());
  } else {
    decode_stream().wait(allocated.get());
  }
}

std::string CudaContext::free_memory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  try_make_current();
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return "an unknown amount free";
  return std::to_string(free >> 20) + " MiB free";
}

void CudaContext::lose(const std::string& reason, Loss loss) {
  if (loss == Loss::kStuckCall) stuck_call_ = true;
  note_lost_gpu(name_);  // first: what sees lost() finds it noted
  if (lost_.exchange(true)) return;
  cuda::stop_reports();
  log::error(
      "{} is lost: {}; its feeds go on on the CPU or another GPU, until framelane is started "
      "again",
      name_, reason);
}

void CudaContext::lose_if_broken(const std::string& reason) {
  // An error that breaks the context is the result of every later call too; other errors belong to
  // one call.
  try_make_current();
  const cudaError_t answer = cudaStreamQuery(upload_stream_.get());
  if (answer != cudaSuccess && answer != cudaErrorNotReady) lose(reason, Loss::kOther);
}

void CudaContext::failed(const std::string& who, const CudaError& error) {
  lose_if_broken(who + ": " + error.what());
  if (!lost_) {
    log::error("{}: {}; {} goes on", who, error.what(), name_);
  }
}

FrameJob* CudaContext::abandon_job(std::atomic<FrameJob*>& job, void (*detach)(FrameJob&)) {
  const std::lock_guard lock(held_mutex_);
  FrameJob* const taken = job.exchange(nullptr);
  if (taken == nullptr) return nullptr;
  ++abandoned_jobs_;
  held_frames_.push_back(taken->input.buffer);
  for (const JobOutput& output : taken->outputs) {
    if (output.target.buffer) held_frames_.push_back(output.target.buffer);
    if (output.side_buffer) held_frames_.push_back(output.side_buffer);
  }
  detach(*taken);
  return taken;
}

void CudaContext::abandoned_job_ended() {
  std::vector<BufferRef> let_go;  // freed without the lock, because that waits for the GPU
  {
    const std::lock_guard lock(held_mutex_);
    if (--abandoned_jobs_ == 0) let_go.swap(held_frames_);
  }
}

void CudaContext::hold_until_idle(const BufferRef& frame) {
  const std::lock_guard lock(held_mutex_);
  if (has_abandoned_jobs()) held_frames_.push_back(frame);
}

std::chrono::nanoseconds CudaContext::account(Engine engine, DeviceClock::Clock::time_point from,
                                              DeviceClock::Clock::time_point to, LaneStats& lane,
                                              std::int64_t frame) {
  DeviceClock::Clock::time_point& last = last_end_[index_of(engine)];
  const auto free_from = std::max(from, last);
  // Jobs of different feeds may be booked in another order than they ended in. Work that ended
  // before work that is already booked adds nothing to the union; its own length is still returned.
  if (last < to) from = free_from;
  last = std::max(last, to);
  lane.busy.add(engine, free_from, to);
  if (free_from < to) lane.trace.slice(trace_kind(engine), free_from, to, frame);
  busy_.add(engine, free_from, to);
  return std::max(to - from, DeviceClock::Clock::duration(0));
}

}  // namespace framelane
