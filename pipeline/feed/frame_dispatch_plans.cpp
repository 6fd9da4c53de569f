// What the encodes make of frames: their encoders, and what the stage converts for them.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

#include "kernels/conversion.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/encode/encode_plan.hpp"
#include "pipeline/feed/frame_dispatch.hpp"
#include "pipeline/feed/smaller_source.hpp"
#include "pipeline/stage/lost_gpus.hpp"

namespace framelane {
namespace {

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
  conversion.overlaid = !route.options->overlays.empty();
  return conversion;
}

bool can_convert(const Conversion& conversion) {
  return is_identity(conversion) || !why_unsupported(conversion);
}

}  // namespace

bool FrameDispatch::apply_format(const InputFrame& frame, const SourceInfo& source) {
  const FrameFormat format = format_of(frame, source);
  const bool audio_changed = std::ranges::any_of(routes_, [&](const EncodeRoute* route) {
    return route->media != nullptr &&
           !same_audio(audio_of(route->media.get()), route->audio_format(source.media.get()));
  });
  const bool changed = audio_changed || format_ != format;
  const auto wants_encoder = [&](const EncodeRoute* route) {
    const bool is_new = route->plan == nullptr && !route->down();
    return changed || restyles_ || is_new || route->begins_anew ||
           route->outage->due(frame.decoded_at) || lost_its_gpu(*route) ||
           (route->plan && route->plan->outdated);
  };
  if (!reroutes_ && std::ranges::none_of(routes_, wants_encoder)) return true;
  if (!changed && parts_.stage_calls.stopped()) return !restyles_ && !reroutes_;

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
  if (prepares || restyles_ || reroutes_) prepare_stage(format);
  restyles_ = reroutes_ = false;
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
  FrameJob& job = begin_job(*place);
  job.analyse = false;
  for (EncodeRoute* const route : routes_) {
    job.outputs[static_cast<std::size_t>(route->consumer)].encode_plan =
        route == routes_[index] ? nullptr : route->plan;
  }
  if (!publish(*place, /*converts=*/false)) return false;
  parts_.ring.wait_released(routes_[index]->consumer, cancel_);
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
  route.begins_anew = false;
  route.media.reset();
  route.early_audio.drop();
  route.outage->failed(refusal.what(), EncodeOutage::Clock::now());
}

void FrameDispatch::prepare_stage(const FrameFormat& format) {
  // Nothing is converted for an encode that is down, nor for one that has left.
  std::vector<Conversion> conversions(outputs_, conversion_between(format, format));
  std::vector<FrameMemory> targets(outputs_, FrameMemory::kHost);
  for (const EncodeRoute* route : routes_) {
    if (route->plan == nullptr) continue;
    const auto output = static_cast<std::size_t>(route->consumer);
    conversions[output] = conversion_to(*route->plan, *route, format);
    targets[output] = route->plan->target.memory;
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
  const bool plan_stays = same_pictures && plan && !plan->outdated && !route.begins_anew &&
                          !lost_its_gpu(route) && can_convert(conversion_to(*plan, route, format));
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
  route.begins_anew = false;
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

}  // namespace framelane
