#include "pipeline/stage/cuda/cuda_lane.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include "kernels/cuda/luma_count.hpp"
#include "kernels/cuda/overlay.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/stage/cuda/image_copy.hpp"

namespace framelane {
namespace {

/// The last rows of a slice are converted with the next slice, because conversions that interpolate
/// chroma read rows below their own. Even.
constexpr int kLookAhead = 4;

bool stays_on_gpu(const JobOutput& output) {
  return output.memory == FrameMemory::kDevice && output.target.buffer;
}

/// False for a frame that the first encode does not take.
bool counts_luma(const LaneWork& work, const FrameJob& job) {
  return work.luma && job.outputs[0].target.side_data != nullptr;
}

/// Gives new targets to a job that can run again.
void replace_targets(FrameJob& job) {
  if (job.input.memory != FrameMemory::kHost) return;
  FramePool pool;  // each buffer goes with its frame
  for (JobOutput& output : job.outputs) {
    if (output.memory == FrameMemory::kDevice) output.target = {};
    if (!output.target.buffer) continue;
    try {
      const ImageView& old = output.target.image;
      output.target = allocate_image(pool, old.format, old.width, old.height);
    } catch (const std::exception&) {
      // Without memory for another target the CPU writes into the one that the GPU may still write:
      // both write the same bytes. But the CPU would draw over what the GPU has drawn on already.
      if (output.overlays) output.target = {};
    }
  }
}

}  // namespace

CudaLane::CudaLane(std::shared_ptr<CudaContext> context, LaneOwner& owner, FeedStats& stats,
                   std::size_t lane_index)
    : index(lane_index),
      context_(std::move(context)),
      owner_(owner),
      stats_(stats),
      lanes_(stats.lanes()),
      subject_("feed " + stats.feed() + ", lane " + std::to_string(lane_index % lanes_.size())) {}

void CudaLane::start(const FrameJob& job) noexcept {
  assert(job_.load() == nullptr);
  plan_ = std::static_pointer_cast<const CudaPlan>(job.plan);
  started_at_ = DeviceClock::Clock::now();
  queued_whole_ = done_comes_ = false;
  try {
    queue(job);
    queued_whole_ = done_comes_ = true;
    return;
  } catch (const CudaError& error) {
    context_->failed(subject_, error);
  }
  // What was queued before the failure still reads and writes the job's frames, so its end has to
  // be known.
  try {
    end_queue();
    done_comes_ = true;
  } catch (const CudaError& error) {
    context_->lose(subject_ + ": " + error.what(), CudaContext::Loss::kOther);
  }
}

/// Records the last event behind everything that was queued, wherever queueing broke off.
void CudaLane::end_queue() {
  const CudaSlice& last = plan_->works[index]->slices.back();
  const CopyGate gate = context_->enter_copy_gate();
  last.uploaded.record(gate.uploads());
  gate.kernels().wait(last.uploaded.get());
  last.kernel_end.record(gate.kernels());
  gate.downloads().wait(last.kernel_end.get());
  last.done.record(gate.downloads());
}

/// Queues the upload of a frame in host memory, after the `other` job's conversions, which read the
/// same device memory. Sets slices_ and returns the rows where they end.
std::span<const int> CudaLane::queue_upload(StreamRef upload, const LaneWork& work,
                                            const LaneWork& other, const ConstImageView& from,
                                            const ImageView& to, bool masks) {
  std::span<const int> ends = plan_->slice_ends;
  // Behind another upload slices would cost calls and gain nothing: the bus is busy anyway. A mask
  // needs whole blocks.
  if (ends.size() > 1 && (masks || !upload.is_idle())) ends = ends.last(1);
  slices_ = std::span(work.slices).last(ends.size());
  upload.wait(other.converted().get());
  work.begin.record(upload);
  int begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    copy_rows(from, to, begin, ends[i], cudaMemcpyHostToDevice, upload);
    slices_[i].uploaded.record(upload);
    begin = ends[i];
  }
  return ends;
}

/// Copies up what is drawn on this job's targets, unless it is on the GPU already. Not behind the
/// copy gate: a copy from memory that is not registered may take long.
void CudaLane::copy_overlays(const FrameJob& job, LaneWork& work) {
  CudaPlan::PresentOverlays& present = *plan_->overlays;
  const std::lock_guard lock(present.mutex);
  for (std::size_t t = 0; t < job.outputs.size(); ++t) {
    work.overlays[t].reset();
    const auto& wanted = job.outputs[t].overlays;
    if (wanted == nullptr) continue;  // also for a frame that the encode does not take
    auto& [overlays, on_gpu] = present.by_target[t];
    if (overlays != wanted) {
      on_gpu = copied_up(*wanted, on_gpu);
      overlays = wanted;
    }
    work.overlays[t] = on_gpu;
  }
}

/// Those of `wanted` that draw something. What is among `present` is not copied again.
std::shared_ptr<const DeviceOverlays> CudaLane::copied_up(
    const Overlays& wanted, const std::shared_ptr<const DeviceOverlays>& present) const {
  auto all = std::make_shared<DeviceOverlays>();
  for (const std::shared_ptr<const Overlay>& overlay : wanted) {
    if (overlay->bytes().empty()) continue;
    if (present != nullptr) {
      const auto known = std::ranges::find(*present, overlay, &DeviceOverlay::overlay);
      if (known != present->end()) {
        all->push_back(*known);
        continue;
      }
    }
    all->push_back(std::make_shared<DeviceOverlay>(*context_, overlay));
    all->back()->copy_up();
  }
  return all;
}

void CudaLane::queue(const FrameJob& job) {
  context_->make_current();
  LaneWork& work = *plan_->works[index];
  // The other job in the same memory, which has to be done with it first. (Waiting for an event
  // that was never recorded does nothing.)
  const LaneWork& other = *plan_->works[(index + lanes_.size()) % plan_->works.size()];
  const LaneImages& images = *work.images;
  ConstImageView source = job.input.image;
  std::span<const int> ends = plan_->slice_ends;
  copy_overlays(job, work);
  const CopyGate gate = context_->enter_copy_gate();
  const StreamRef kernels = gate.kernels();
  const StreamRef download = gate.downloads();
  if (images.source) {
    const ImageView uploaded = images.source->laid_out_as(job.input.image);
    ends = queue_upload(gate.uploads(), work, other, job.input.image, uploaded, job.masks);
    source = as_const(uploaded);
  } else {
    assert(job.input.memory == FrameMemory::kDevice && ends.size() == 1);
    slices_ = work.slices;
    work.begin.record(context_->decode_stream());
    kernels.wait(work.begin.get());
  }
  kernels.wait(other.done().get());
  rows_.resize(images.targets.size());
  int begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const bool last = i + 1 == ends.size();
    const int end = last ? ends[i] : ends[i] - kLookAhead;
    const CudaSlice& slice = slices_[i];
    if (images.source) kernels.wait(slice.uploaded.get());
    if (work.luma) work.luma->prepare(kernels);
    slice.kernel_begin.record(kernels);
    // The lane's own memory, or a surface that its decoder has given away.
    if (job.masks) plan_->mask.value().enqueue(as_writable(source), kernels);
    for (std::size_t t = 0; t < images.targets.size(); ++t) {
      // What is scaled needs the whole source.
      const std::optional<int> scaled = plan_->scaled_heights[t];
      rows_[t] = scaled ? RowRange{0, last ? *scaled : 0} : RowRange{begin, end};
      if (!job.outputs[t].target.buffer) rows_[t] = {};
      if (!rows_[t].empty()) queue_conversion(job.outputs[t], t, source, kernels);
    }
    queue_overlays(job, kernels);
    slice.kernel_end.record(kernels);
    download.wait(slice.kernel_end.get());
    for (std::size_t t = 0; t < images.targets.size(); ++t) {
      const bool bypass = !images.targets[t] && images.source;
      if (bypass || rows_[t].empty() || stays_on_gpu(job.outputs[t])) continue;
      copy_rows(images.targets[t] ? as_const(images.targets[t]->image) : source,
                job.outputs[t].target.image, rows_[t].begin, rows_[t].end, cudaMemcpyDeviceToHost,
                download);
    }
    if (last && counts_luma(work, job)) {
      work.luma->copy_to(job.outputs[0].target.side_data, download);
    }
    slice.done.record(download);
    begin = end;
  }
}

/// Where a target is made: in the lane's memory or in the job's own. Empty: nothing is made, the
/// source itself is copied down.
ImageView CudaLane::target_of(const JobOutput& output, std::size_t t) const {
  if (stays_on_gpu(output)) return output.target.image;
  const std::optional<DeviceImage>& lane_target = plan_->works[index]->images->targets[t];
  return lane_target ? lane_target->image : ImageView{};
}

/// Queues what makes rows of one target.
void CudaLane::queue_conversion(const JobOutput& output, std::size_t t,
                                const ConstImageView& source, StreamRef kernels) {
  const LaneWork& work = *plan_->works[index];
  const auto [begin, end] = rows_[t];
  std::uint32_t* const counts = work.luma && t == 0 ? work.luma->counts() : nullptr;
  const ImageView target = target_of(output, t);
  const bool makes_target = target.planes[0].data != nullptr;
  if (plan_->converters[t] != nullptr && makes_target) {
    const auto& constants = plan_->constants[t];
    const CudaFrame frame{source, target, counts, constants ? constants->memory.data() : nullptr};
    cuda::check(plan_->converters[t]->enqueue({&frame, 1}, begin, end, kernels.get()),
                "cudaLaunchKernel");
    return;
  }
  if (makes_target) copy_rows(source, target, begin, end, cudaMemcpyDeviceToDevice, kernels);
  if (counts != nullptr) {
    cuda::check(enqueue_luma_count(source, begin, end, counts, kernels.get()), "cudaLaunchKernel");
  }
}

/// Queues what is drawn on rows of all targets. Of each target the first overlays come first, then
/// the second: so one launch takes many also where they lie one over the other.
void CudaLane::queue_overlays(const FrameJob& job, StreamRef kernels) {
  const LaneWork& work = *plan_->works[index];
  drawings_.clear();
  bool more = true;
  for (std::size_t i = 0; more; ++i) {
    more = false;
    for (std::size_t t = 0; t < work.overlays.size(); ++t) {
      const DeviceOverlays* const overlays = work.overlays[t].get();
      if (overlays == nullptr || i >= overlays->size() || rows_[t].empty()) continue;
      DeviceOverlay& drawn = *(*overlays)[i];
      drawn.await_copy(kernels);
      drawings_.push_back({drawn.overlay().get(), drawn.bytes(), target_of(job.outputs[t], t),
                           rows_[t].begin, rows_[t].end});
      more = true;
    }
  }
  if (drawings_.empty()) return;
  cuda::check(enqueue_blends(drawings_, kernels.get()), "cudaLaunchKernel");
}

bool CudaLane::wait(EventWait& waiting) noexcept {
  if (done_comes_) {
    try {
      waiting.wait(plan_->works[index]->done());
      return queued_whole_;
    } catch (const CudaError& error) {
      context_->failed(subject_, error);
    }
  }
  // What was queued may still read and write the job's frames. If the GPU is lost, this returns at
  // once.
  context_->drain_jobs();
  return false;
}

void CudaLane::hand_over(bool good) noexcept {
  const auto seen = DeviceClock::Clock::now();
  // This may be the plan's last owner, which frees the plan's memory: at the end of this function.
  const std::shared_ptr<const CudaPlan> plan = std::move(plan_);
  FrameJob* const job = job_.exchange(nullptr);
  if (job == nullptr) {
    context_->abandoned_job_ended();
    return;
  }
  LaneWork& work = *plan->works[index];
  if (good && counts_luma(work, *job))
    job->luma = work.luma->take(job->outputs[0].target.side_data);
  if (good) account(work, *job, plan->downloads, seen);
  owner_.completed(*this, *job, good);
}

/// If a call fails, the job's times are not booked, but the job is still good.
void CudaLane::account(const LaneWork& work, const FrameJob& job, bool downloads,
                       DeviceClock::Clock::time_point seen) noexcept {
  LaneStats& lane = *lanes_[index % lanes_.size()];
  const std::int64_t frame = job.input.time_us;
  try {
    DeviceClock& clock = context_->clock();
    // Nothing that comes after this job may seem to have begun before its end.
    clock.correct(work.done(), started_at_, seen);
    const auto begin = clock.time_of(work.begin, started_at_);
    const auto at = [&](const CudaEvent& event) { return begin + event.since(work.begin); };
    if (work.images->source) {
      stats_.observe(
          StageStep::kH2d,
          context_->account(Engine::kH2d, begin, at(work.slices.back().uploaded), lane, frame));
    }
    std::chrono::nanoseconds kernel{0};
    std::chrono::nanoseconds download{0};
    for (const CudaSlice& slice : slices_) {
      const auto converted = at(slice.kernel_end);
      kernel += context_->account(Engine::kKernel, at(slice.kernel_begin), converted, lane, frame);
      if (!downloads) continue;
      download += context_->account(Engine::kD2h, converted, at(slice.done), lane, frame);
    }
    stats_.observe(StageStep::kKernel, kernel);
    if (downloads) stats_.observe(StageStep::kD2h, download);
    lane.held.add(started_at_, seen);
    clock.refresh(work.done(), started_at_, seen);
  } catch (const CudaError& error) {
    context_->failed(subject_, error);
  }
}

FrameJob* CudaLane::abandon() { return context_->abandon_job(job_, replace_targets); }

}  // namespace framelane
