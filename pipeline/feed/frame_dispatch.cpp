#include "pipeline/feed/frame_dispatch.hpp"

extern "C" {
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include "kernels/conversion.hpp"
#include "kernels/luma_histogram.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/encode/encode_plan.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

/// True if the encode gets the source's own frames.
bool passes_frames_on(const EncodeRoute* route) { return route->plan && !route->conversion; }

}  // namespace

FrameDispatch::FrameDispatch(Parts parts, std::stop_token cancel)
    : parts_(std::move(parts)),
      cancel_(std::move(cancel)),
      run_(parts_.stats->run()),
      device_(parts_.stats->status().device),
      ring_jobs_(parts_.stats->ring_jobs()),
      on_full_(parts_.options.on_full),
      copies_(std::ranges::any_of(parts_.options.encodes, &EncodeOptions::copy_video)),
      masker_(parts_.options.input.mask, *parts_.stats),
      drawer_(parts_.deadlines, parts_.line_clock, cancel_),
      catch_up_(waits_for_reader(parts_.options.input)) {
  for (EncodeRoute* const route : parts_.routes) {
    if (!route->options->copy_video) add(*route);
  }
  count_outputs();
}

void FrameDispatch::add(EncodeRoute& route) {
  route.rate_limit = RateLimit(route.options->rate, route.options->gop);
  routes_.push_back(&route);
  lines_.push_back(route.line);
}

void FrameDispatch::remove(EncodeRoute& route) {
  const auto place = std::ranges::find(routes_, &route);
  lines_.erase(lines_.begin() + (place - routes_.begin()));
  routes_.erase(place);
  {
    const CallScope freeing(parts_.stage_calls, parts_.deadlines.stage_call);
    route.plan.reset();  // its frames may be on a GPU
  }
  parts_.ring.dismiss(route.consumer);
}

void FrameDispatch::count_outputs() {
  tickets_.resize(routes_.size());
  drawn_.resize(routes_.size());
  outputs_ = 0;
  for (const EncodeRoute* const route : routes_) {
    outputs_ = std::max(outputs_, static_cast<std::size_t>(route->consumer) + 1);
  }
}

void FrameDispatch::change(const RunChanges::Change& change) {
  for (EncodeRoute* const route : change.removed) {
    if (!route->options->copy_video) remove(*route);
  }
  for (EncodeRoute* const route : routes_) take_options(*route, change.options);
  for (EncodeRoute* const route : change.added) {
    if (route->options->copy_video) continue;
    parts_.ring.admit(route->consumer);
    add(*route);
  }
  count_outputs();
  reroutes_ = reroutes_ || !change.removed.empty() || !change.added.empty();
  on_full_ = change.options->on_full;
  copies_ = std::ranges::any_of(change.options->encodes, &EncodeOptions::copy_video);
  if (masker_.set_shapes(change.options->input.mask)) {
    log::info("feed {}: the mask has changed", parts_.options.name);
    restyles_ = true;
  }
}

void FrameDispatch::take_options(EncodeRoute& route,
                                 const std::shared_ptr<const FeedOptions>& options) {
  const auto found = std::ranges::find(options->encodes, route.options->name, &EncodeOptions::name);
  const std::shared_ptr<const EncodeOptions> next(options, &*found);
  const std::shared_ptr<const EncodeOptions> old = std::exchange(route.options, next);
  if (*old == *next) return;
  log::info("feed {}: encode {}: has changed", parts_.options.name, next->name);
  if (differ_only_in_overlays(*old, *next)) {
    restyles_ = true;
    return;
  }
  if (old->rate != next->rate || old->gop != next->gop) {
    route.rate_limit = RateLimit(next->rate, next->gop);
  }
  route.begins_anew = true;
}

void FrameDispatch::dispatch(InputFrame&& frame, const SourceInfo& source) {
  frame.time_us = av_rescale_q(frame.pts, source.time_base, AV_TIME_BASE_Q);
  open_tickets(parts_.stats, run_, lines_, tickets_, frame.time_us);
  try {
    masker_.prepare(frame);
    if (!apply_format(frame, source)) return drop_tickets(parts_.cancel_reason);
    const bool masked = masker_.apply(frame, stage_masking());
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      EncodeRoute& route = *routes_[i];
      if (route.down()) {
        tickets_[i].drop(DropReason::kEncoder);
        route.lost_until = std::chrono::microseconds(frame.time_us);
        continue;
      }
      route.outage->worked(frame.decoded_at);
      if (!route.rate_limit.takes(frame.pts, source.time_base, source.frame_rate)) {
        tickets_[i].drop(DropReason::kRate);
      }
    }
    draw(frame, source);
    submit(std::move(frame), source, !masked);
  } catch (...) {
    drop_tickets(DropReason::kFeedFailed);
    throw;
  }
}

StageMasking FrameDispatch::stage_masking() const {
  if (masker_.mask() == nullptr || std::ranges::any_of(routes_, passes_frames_on)) {
    return StageMasking::kNone;
  }
  return parts_.stage.takes_device_frames() ? StageMasking::kOnGpu : StageMasking::kCopy;
}

void FrameDispatch::submit(InputFrame&& frame, const SourceInfo& source, bool stage_masks) {
  const bool is_wanted = std::ranges::any_of(tickets_, &FrameTicket::operator bool);
  auto place = is_wanted ? take_place(frame, source) : std::nullopt;
  const CallScope submitting(parts_.stage_calls, parts_.deadlines.stage_call);
  if (!place) {
    frame.buffer = {};  // inside the CallScope: giving a surface back to NVDEC is a call on the GPU
    if (!is_wanted) return;
    const bool ending = cancel_.stop_requested() || parts_.ring.closed();
    drop_tickets(ending ? parts_.cancel_reason.load() : DropReason::kRingFull);
    return;
  }
  copy_what_is_held(frame);
  FrameJob& job = begin_job(*place);
  job.plan = plan_;
  job.masks = stage_masks;
  bool converts = false;
  job.analyse = analyses_ && tickets_.front();
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const EncodeRoute& route = *routes_[i];
    JobOutput& output = job.outputs[static_cast<std::size_t>(route.consumer)];
    output.converts = route.conversion && tickets_[i];
    if (output.converts) {
      converts = true;
      allocate_target(output, route, job.analyse && i == 0 ? sizeof(LumaHistogram) : 0);
      output.overlays = std::move(drawn_[i]);
    }
    output.encode_plan = route.plan;
  }
  // Nothing throws from here on: the job takes over the tickets.
  job.input = std::move(frame);
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    if (tickets_[i]) routes_[i]->rate_limit.taken();
    job.outputs[static_cast<std::size_t>(routes_[i]->consumer)].ticket = std::move(tickets_[i]);
  }
  if (!publish(*place, converts)) {
    for (JobOutput& output : job.outputs) {
      if (output.ticket) output.ticket.drop(parts_.cancel_reason);
    }
    return;
  }
  // The job stays until the stage has finished: the encodes wait for their targets before they
  // release it.
  if (converts) parts_.stage.submit(job);
}

FrameJob& FrameDispatch::begin_job(FrameRing::Place& place) const {
  FrameJob& job = *place;
  job.outputs.resize(outputs_);
  for (JobOutput& output : job.outputs) output.converts = false;
  return job;
}

bool FrameDispatch::publish(FrameRing::Place& place, bool converts) {
  auto& ready = (*ring_jobs_)[index_of(RingState::kReady)];
  if (!converts) {
    place->converted = true;
    ++ready;
  }
  if (place.publish()) return true;
  if (!converts) --ready;
  return false;
}

void FrameDispatch::allocate_target(JobOutput& output, const EncodeRoute& route,
                                    std::size_t side_data_bytes) const {
  const Conversion& conversion = *route.conversion;
  output.memory = route.plan->target.memory;
  if (output.memory == FrameMemory::kHost) {
    const auto [width, height] = conversion.target_size();
    output.target = allocate_image(*route.pool, conversion.target, width, height, side_data_bytes);
    return;
  }
  if (!parts_.stage.takes_device_frames()) return;  // the encode drops the frame
  try {
    output.target = allocate_gpu_image(route.plan->frames, conversion.target);
  } catch (const FeedError& error) {
    if (!parts_.stage.still_takes_device_frames(error.what())) return;  // it has just been lost
    throw FeedError(error.code(),
                    "encode " + route.options->name + " on " + device_ + ": " + error.what());
  }
  if (side_data_bytes == 0) return;
  output.side_buffer = route.pool->get(side_data_bytes);
  output.target.side_data = output.side_buffer.get()->data;
}

/// An encoder that is given the frame itself may hold it until it has seen others. If they are in
/// the few slots of another process, there may be no others until it lets go: it gets a copy.
void FrameDispatch::copy_what_is_held(InputFrame& frame) const {
  if (frame.loan == nullptr) return;
  const auto holder = std::ranges::find_if(routes_, [](const EncodeRoute* route) {
    return passes_frames_on(route) && may_hold_frames(route->plan->codec);
  });
  if (holder == routes_.end()) return;
  PooledImage copy = copy_into(*(*holder)->pool, frame.image);
  require_unspoiled(frame);
  parts_.stats->count(HostCopy::kDecoder);
  frame.image = as_const(copy.image);
  frame.buffer = std::move(copy.buffer);
  frame.loan = nullptr;
}

std::optional<FrameRing::Place> FrameDispatch::take_place(const InputFrame& frame,
                                                          const SourceInfo& source) {
  const bool blocks = blocks_when_full(on_full_, source.live);
  Clock::time_point deadline = frame.decoded_at;
  if (source.live) {
    deadline = catch_up_.deadline(std::chrono::microseconds(frame.time_us), frame.decoded_at);
  }
  const auto start = Clock::now();
  const bool waits = blocks || start < deadline;
  // A drain still encodes what has been read.
  auto place = blocks  ? parts_.ring.acquire(cancel_)
               : waits ? parts_.ring.acquire_until(cancel_, deadline)
                       : parts_.ring.try_acquire();
  const auto end = Clock::now();
  if (waits) parts_.stats->observe(StageStep::kWait, end - start);
  parts_.stats->trace().slice(TraceKind::kWait, start, end, frame.time_us);
  if (!place) catch_up_.missed(end);
  return place;
}

void FrameDispatch::drop_tickets(DropReason reason) {
  for (FrameTicket& ticket : tickets_) {
    if (ticket) ticket.drop(reason);
  }
}

}  // namespace framelane
