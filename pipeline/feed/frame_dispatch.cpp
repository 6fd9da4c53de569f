// Longer than 400 lines: what becomes of one frame, and of each encode that takes it, in one class.
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
#include "pipeline/feed/smaller_source.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/packets/media.hpp"
#include "pipeline/source/input_options.hpp"
#include "pipeline/stage/lost_gpus.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

FrameFormat format_of(const InputFrame& frame, const SourceInfo& source) {
  return {frame.image.format, frame.image.width, frame.image.height,        frame.color,
          source.time_base,   source.frame_rate, frame.sample_aspect_ratio, frame.memory};
}

/// True if the pictures are as before and only their memory has changed, and with it perhaps their
/// layout.
bool moved(FrameFormat from, const FrameFormat& to) {
  if (from.memory == to.memory) return false;
  from.memory = to.memory;
  from.layout = to.layout;
  return from == to;
}

Conversion conversion_to(const EncodePlan& plan, const EncodeRoute& route,
                         const FrameFormat& source) {
  Conversion conversion = conversion_between(source, plan.target, plan.scaling);
  conversion.overlaid = !route.drawn().empty();
  return conversion;
}

/// True if the encode gets the source's own frames.
bool passes_frames_on(const EncodeRoute* route) { return route->plan && !route->conversion; }

bool can_convert(const Conversion& conversion) {
  return is_identity(conversion) || !why_unsupported(conversion);
}

}  // namespace

FrameDispatch::FrameDispatch(Parts parts, std::stop_token cancel)
    : parts_(parts),
      cancel_(std::move(cancel)),
      run_(parts_.stats->run()),
      device_(parts_.stats->status().device),
      ring_jobs_(parts_.stats->ring_jobs()),
      copies_(std::ranges::any_of(parts_.options.encodes, &EncodeOptions::copy_video)),
      masker_(parts_.options.input.mask, *parts_.stats),
      drawer_(parts_.deadlines, parts_.line_clock, cancel_),
      catch_up_(waits_for_reader(parts_.options.input)) {
  for (EncodeRoute& route : parts_.routes) {
    if (route.options->copy_video) continue;
    route.rate_limit = RateLimit(route.options->rate, route.options->gop);
    routes_.push_back(&route);
  }
  tickets_.resize(routes_.size());
  drawn_.resize(routes_.size());
}

void FrameDispatch::dispatch(InputFrame&& frame, const SourceInfo& source) {
  open_tickets(parts_.stats, run_, tickets_);
  try {
    take_style();
    masker_.prepare(frame);
    if (!apply_format(frame, source)) return drop_tickets(parts_.cancel_reason);
    const bool masked = masker_.apply(frame, stage_masking());
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      EncodeRoute& route = *routes_[i];
      if (route.down()) {
        tickets_[i].drop(DropReason::kEncoder);
        route.lost_until =
            std::chrono::microseconds(av_rescale_q(frame.pts, source.time_base, AV_TIME_BASE_Q));
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

void FrameDispatch::restyle(std::shared_ptr<const FeedOptions> options) {
  const std::lock_guard lock(style_mutex_);
  next_style_ = std::move(options);
  has_next_style_ = true;
}

void FrameDispatch::take_style() {
  if (!has_next_style_) return;
  {
    const std::lock_guard lock(style_mutex_);
    style_ = std::exchange(next_style_, nullptr);
    has_next_style_ = false;
  }
  masker_.set_shapes(style_->input.mask);
  for (EncodeRoute* route : routes_) {
    const auto encode =
        std::ranges::find(style_->encodes, route->options->name, &EncodeOptions::name);
    route->overlay_options = &encode->overlays;
  }
  restyles_ = true;
}

StageMasking FrameDispatch::stage_masking() const {
  if (masker_.mask() == nullptr || std::ranges::any_of(routes_, passes_frames_on)) {
    return StageMasking::kNone;
  }
  return parts_.stage.takes_device_frames() ? StageMasking::kOnGpu : StageMasking::kCopy;
}

bool FrameDispatch::apply_format(const InputFrame& frame, const SourceInfo& source) {
  const FrameFormat format = format_of(frame, source);
  const bool audio_changed = std::ranges::any_of(routes_, [&](const EncodeRoute* route) {
    return route->media != nullptr &&
           !same_audio(audio_of(route->media.get()), route->audio_format(source.media.get()));
  });
  const bool changed = audio_changed || format_ != format;
  const auto wants_encoder = [&](const EncodeRoute* route) {
    return changed || restyles_ || route->outage->due(frame.decoded_at) || lost_its_gpu(*route) ||
           (route->plan && route->plan->outdated);
  };
  if (std::ranges::none_of(routes_, wants_encoder)) return true;
  if (!changed && parts_.stage_calls.stopped()) return !restyles_;

  // A decoder that leaves the GPU, or goes back to it, is no reason to begin a new file, nor is
  // another mask.
  const bool same_pictures =
      !audio_changed && format_ && (format_ == format || moved(*format_, format));
  format_.reset();  // until all is done, since what throws leaves plans of two formats
  std::vector<std::pair<EncodeRoute*, FeedError>> refusals;
  bool prepares = changed;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    EncodeRoute* const route = routes_[i];
    if (!wants_encoder(route)) continue;
    const bool was_down = route->down();
    // Each may take seconds. What was read in the last format is still encoded.
    if (parts_.stage_calls.stopped()) return false;
    try {
      if (!apply_format(i, format, source, same_pictures)) return false;
      prepares = true;
    } catch (const FeedError& refusal) {
      if (ends_feed(refusal, source, was_down)) throw;
      refusals.emplace_back(route, refusal);
    }
  }
  const bool none_works = !copies_ && refusals.size() == routes_.size();
  if (none_works) {
    // One that the next start may mend says more than one that it cannot.
    const auto passing = std::ranges::find_if(refusals, [](const auto& refusal) {
      return refusal.second.code() != FeedFault::kConfiguration;
    });
    throw(passing != refusals.end() ? *passing : refusals.front()).second;
  }
  // A call may have returned long after the stop: this run may have been given up since.
  if (!refusals.empty() && parts_.stage_calls.stopped()) return false;
  for (auto& [route, refusal] : refusals) {
    prepares = prepares || !route->down();  // it may be the one that is analysed
    take_down(*route, refusal);
  }
  if (prepares || restyles_) prepare_stage(format);
  restyles_ = false;
  format_ = format;
  if (changed && source.live) name_smaller_source();
  return true;
}

void FrameDispatch::name_smaller_source() const {
  std::vector<Conversion> conversions;
  for (const EncodeRoute* route : routes_) {
    if (route->down()) return;  // it may need the large picture when it comes back
    conversions.push_back(conversion_to(*route->plan, *route, *format_));
  }
  const std::string advice = smaller_source_advice(parts_.options, conversions);
  if (!advice.empty()) log::info("feed {}: {}", parts_.options.name, advice);
}

bool FrameDispatch::lost_its_gpu(const EncodeRoute& route) const {
  return route.plan && has_left_gpu(*route.plan, parts_.stage);
}

/// Has the encode finish the frames before and close its encoder, and waits for that: a job without
/// a frame tells it. The next encoder may need the session on the GPU that this one has. False if
/// the feed ends meanwhile.
bool FrameDispatch::close_encoder(std::size_t index) {
  auto place = parts_.ring.acquire(cancel_);
  if (!place) return false;
  FrameJob& job = **place;
  job.analyse = false;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    job.outputs[i].converts = false;
    job.outputs[i].encode_plan = i == index ? nullptr : routes_[i]->plan;
  }
  if (!publish(*place, /*converts=*/false)) return false;
  parts_.ring.wait_released(static_cast<int>(index), cancel_);
  if (parts_.stage_calls.stopped() || parts_.ring.closed()) return false;
  const CallScope freeing(parts_.stage_calls, parts_.deadlines.stage_call);
  routes_[index]->plan.reset();
  return true;
}

bool FrameDispatch::ends_feed(const FeedError& refusal, const SourceInfo& source,
                              bool was_down) const {
  // Much of a file would pass before threads or memory are there again. Of an encode that was down
  // it passes anyway.
  const bool waits = refusal.code() == FeedFault::kMemory && !source.live && !was_down;
  return parts_.options.once || waits;
}

void FrameDispatch::take_down(EncodeRoute& route, const FeedError& refusal) {
  {
    const CallScope freeing(parts_.stage_calls, parts_.deadlines.stage_call);
    route.plan.reset();  // its frames may be on a GPU
  }
  route.conversion.reset();
  route.overlays.reset();
  route.media.reset();
  route.early_audio.drop();
  route.outage->failed(refusal.what(), EncodeOutage::Clock::now());
}

void FrameDispatch::prepare_stage(const FrameFormat& format) {
  std::vector<Conversion> conversions;
  std::vector<FrameMemory> targets;
  for (const EncodeRoute* route : routes_) {
    // Nothing is converted for an encode that is down.
    conversions.push_back(route->plan ? conversion_to(*route->plan, *route, format)
                                      : conversion_between(format, format));
    targets.push_back(route->plan ? route->plan->target.memory : FrameMemory::kHost);
  }
  apply_analysis();
  const CallScope preparing(parts_.stage_calls, parts_.deadlines.prepare);
  plan_.reset();  // first: the old plan's memory goes with its last job in flight
  if (std::ranges::all_of(routes_, &EncodeRoute::down)) return;
  plan_ = parts_.stage.prepare(conversions, format.memory, analyses_, targets, masker_.mask());
}

bool FrameDispatch::apply_format(std::size_t index, const FrameFormat& format,
                                 const SourceInfo& source, bool same_pictures) {
  EncodeRoute& route = *routes_[index];
  std::shared_ptr<EncodePlan> plan = route.plan;
  const bool plan_stays = same_pictures && plan && !plan->outdated && !lost_its_gpu(route) &&
                          can_convert(conversion_to(*plan, route, format));
  if (!plan_stays) {
    if (plan && !plan->gpu.empty() && !is_lost_gpu(plan->gpu)) {
      plan.reset();
      if (!close_encoder(index)) return false;
    }
    plan = open_encoder(route, format, source);
  } else if (restyles_) {
    drawer_.prepare_overlays(route, plan->target);
  }
  const Conversion conversion = conversion_to(*plan, route, format);
  const bool on_host =
      format.memory == FrameMemory::kHost && plan->target.memory == FrameMemory::kHost;
  const bool bypass = is_bypass(conversion) && on_host;
  route.conversion = bypass ? std::nullopt : std::optional(conversion);
  std::string size;
  if (plan->scaling) size = fmt::format("{}x{} ", plan->target.width, plan->target.height);
  log::info("feed {}: encode {}: {}x{} {} ({}) {} {}{} ({}), {}", parts_.options.name,
            route.options->name, format.width, format.height, info(format.layout).name,
            describe(format.color), bypass ? "passed on as" : "to", size,
            info(plan->target.layout).name, describe(plan->target.color), plan->codec.name);
  {
    const CallScope freeing(parts_.stage_calls, parts_.deadlines.stage_call);
    route.plan = std::move(plan);  // the old one's frames may be on a GPU
  }
  route.outage->opened(route.plan->codec.name);
  route.set_media(route.plan->media, cancel_);
  return true;
}

std::shared_ptr<EncodePlan> FrameDispatch::open_encoder(EncodeRoute& route,
                                                        const FrameFormat& format,
                                                        const SourceInfo& source) {
  std::shared_ptr<EncodePlan> plan;
  {
    // NVENC's encoders are on the feed's GPU. No other encoder that hangs is the GPU's fault.
    std::optional<CallScope> opening;
    const auto time_opening = [&](const CodecCandidate& candidate) {
      const bool on_gpu = is_nvenc(candidate) && gpu_of(candidate) == device_;
      opening.emplace(on_gpu ? parts_.stage_calls : *route.opening, parts_.deadlines.prepare);
    };
    GpuContext gpu_context;
    if (parts_.stage.takes_device_frames()) {
      gpu_context = [this](std::string& why) { return parts_.stage.encode_context(why); };
    }
    plan = make_encode_plan({.options = *route.options,
                             .source = format,
                             .feed = parts_.options.name,
                             .device = device_,
                             .live = source.live,
                             .rendition = route.rendition,
                             .audio = route.audio_format(source.media.get()),
                             .lost_until = route.lost_until,
                             .gpu_context = std::move(gpu_context),
                             .opening = time_opening});
  }
  try {
    drawer_.prepare_overlays(route, plan->target);
  } catch (...) {
    const CallScope freeing(parts_.stage_calls, parts_.deadlines.stage_call);
    plan.reset();
    throw;
  }
  return plan;
}

// A warning, since the configuration cannot be refused for this: what an encoder takes is known
// only now.
void FrameDispatch::apply_analysis() {
  analyses_ = false;
  if (!parts_.options.analyse || routes_.front()->down()) return;
  const PixelFormat encoded = routes_.front()->plan->target.layout;
  analyses_ = has_luma(encoded);
  if (analyses_) return;
  const EncodeOptions& encode = *routes_.front()->options;
  log::warn(
      "feed {}: encode {} takes {}, which has no luma, so that nothing is analysed; give it "
      "convert.format: yuv420p or another YUV format",
      parts_.options.name, encode.name, info(encoded).name);
}

/// Makes what is drawn on the frame. An encode whose fonts cannot be read is down from now on.
void FrameDispatch::draw(const InputFrame& frame, const SourceInfo& source) {
  std::optional<std::chrono::system_clock::time_point> taken;  // the same for all encodes
  bool failed = false;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    EncodeRoute& route = *routes_[i];
    drawn_[i].reset();
    if (!tickets_[i] || !route.overlays) continue;
    if (!taken) taken = drawer_.wall_clock_time(frame, source);
    try {
      drawn_[i] = FrameDrawer::draw(route, *taken);
    } catch (const FeedError& refusal) {
      const bool works_otherwise =
          copies_ || std::ranges::any_of(routes_, [&](const EncodeRoute* other) {
            return other != &route && !other->down();
          });
      if (!works_otherwise || ends_feed(refusal, source, /*was_down=*/false)) throw;
      tickets_[i].drop(DropReason::kEncoder);
      take_down(route, refusal);
      failed = true;
    }
  }
  if (failed) prepare_stage(*format_);
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
  FrameJob& job = **place;
  job.plan = plan_;
  job.masks = stage_masks;
  bool converts = false;
  job.analyse = analyses_ && tickets_.front();
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const EncodeRoute& route = *routes_[i];
    job.outputs[i].converts = route.conversion && tickets_[i];
    if (job.outputs[i].converts) {
      converts = true;
      allocate_target(job.outputs[i], route, job.analyse && i == 0 ? sizeof(LumaHistogram) : 0);
      job.outputs[i].overlays = std::move(drawn_[i]);
    }
    job.outputs[i].encode_plan = route.plan;
  }
  // Nothing throws from here on: the job takes over the tickets.
  job.input = std::move(frame);
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    if (tickets_[i]) routes_[i]->rate_limit.taken();
    job.outputs[i].ticket = std::move(tickets_[i]);
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
  const bool blocks = blocks_when_full(parts_.options.on_full, source.live);
  Clock::time_point deadline = frame.decoded_at;
  if (source.live) {
    const std::chrono::microseconds time(av_rescale_q(frame.pts, source.time_base, AV_TIME_BASE_Q));
    deadline = catch_up_.deadline(time, frame.decoded_at);
  }
  const auto start = Clock::now();
  const bool waits = blocks || start < deadline;
  // A drain still encodes what has been read.
  auto place = blocks  ? parts_.ring.acquire(cancel_)
               : waits ? parts_.ring.acquire_until(cancel_, deadline)
                       : parts_.ring.try_acquire();
  if (waits) parts_.stats->observe(StageStep::kWait, Clock::now() - start);
  if (!place) catch_up_.missed(Clock::now());
  return place;
}

void FrameDispatch::drop_tickets(DropReason reason) {
  for (FrameTicket& ticket : tickets_) {
    if (ticket) ticket.drop(reason);
  }
}

}  // namespace framelane
