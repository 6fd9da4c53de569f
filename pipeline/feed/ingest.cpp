#include "pipeline/feed/ingest.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

/// Copied audio that may wait for the first video frame to be decoded: some seconds.
constexpr std::size_t kMaxEarlyAudio = 1024;
/// For opening an encoder, and for a plan: kernels may have to be compiled first, for a GPU newer
/// than the build.
constexpr std::chrono::minutes kPrepareTime{1};

FrameFormat format_of(const InputFrame& frame, const SourceInfo& source) {
  return {frame.image.format, frame.image.width, frame.image.height,        frame.color,
          source.time_base,   source.frame_rate, frame.sample_aspect_ratio, frame.memory};
}

/// Whether the pictures are the same, now decoded elsewhere than before.
bool moved(FrameFormat from, const FrameFormat& to) {
  if (from.memory == to.memory) return false;
  from.memory = to.memory;
  from.layout = to.layout;
  return from == to;
}

bool can_convert(const Conversion& conversion) {
  return is_identity(conversion) || !why_unsupported(conversion);
}

std::string describe(const SourceInfo& source, const InputOptions& input) {
  if (input.raw) {
    return fmt::format("{} {}x{}", input.raw->pixel_format, input.raw->width, input.raw->height);
  }
  const AVCodecParameters& video = *source.media->video.parameters;
  return fmt::format("{} {}x{}", avcodec_get_name(video.codec_id), video.width, video.height);
}

bool same_audio(const MediaFormat* a, const MediaFormat* b) {
  const bool a_has = a != nullptr && a->audio.has_value();
  const bool b_has = b != nullptr && b->audio.has_value();
  return a_has == b_has && (!a_has || same_stream(*a->audio, *b->audio));
}

MediaFormatRef copied_media(const MediaFormat& source, bool audio) {
  auto media = std::make_shared<MediaFormat>();
  media->video = {copy_parameters(*source.video.parameters), source.video.time_base,
                  source.video.frame_rate};
  if (audio && source.audio) {
    media->audio =
        StreamFormat{copy_parameters(*source.audio->parameters), source.audio->time_base, {0, 1}};
  }
  return media;
}

}  // namespace

Ingest::Ingest(Parts parts)
    : parts_(std::move(parts)),
      read_stop_(parts_.interrupt.stop()),
      timeline_(*parts_.stats),
      backoff_(parts_.options.input.reconnect),
      faults_("feed " + parts_.options.name) {
  for (Branch& branch : parts_.branches) {
    if (branch.options->copy_video) {
      copies_ = true;
    } else {
      frame_branches_.push_back(&branch);
    }
  }
  tickets_.resize(frame_branches_.size());
}

void Ingest::run(std::stop_token cancel) {
  cancel_ = std::move(cancel);
  const InputOptions& input = parts_.options.input;
  const SourceContext context{
      .pool = pool_,
      .stats = *parts_.stats,
      .timeline = timeline_,
      .interrupt = parts_.interrupt,
      .decode = !frame_branches_.empty(),
      .want_audio = std::ranges::any_of(
          parts_.branches, [](const Branch& branch) { return branch.options->copy_audio; }),
      .pipe = &pipe_,
      .stage = parts_.stage,
      .ring = parts_.options.ring};
  while (!read_stop_.stop_requested()) {
    running_ = false;
    bool opened = false;
    bool refills = false;
    std::pair<IoFault, std::string> lost;
    // However the source ends, sound that still waits for a picture is lost.
    struct EarlyAudio {
      Ingest& ingest;
      ~EarlyAudio() { ingest.drop_early_audio(); }
    } const early_audio{*this};
    try {
      // What it was lost for stays to be seen until it is there again.
      parts_.stats->set_state(FeedState::kConnecting, parts_.stats->status().reason);
      const std::unique_ptr<Source> source = open_source(input, context);
      if (read_stop_.stop_requested()) return;  // perhaps long ago, and given up since
      opened = true;
      follow_liveness(source->info());
      // A FIFO's writers come and go; a file's end is final.
      refills = !parts_.options.once && names_fifo(input.url);
      parts_.stats->set_decoder(source->info().decoder);
      if (read_all(*source) == ReadAll::kStopped) return;
      if (!refills && !running_) {
        throw IoError(IoFault::kDecode, redact(input.url) + " ended without one " +
                                            (context.decode ? "frame" : "packet of video") +
                                            " that could be read; check the file");
      }
      if (!refills) return;
      lost = {IoFault::kEof, "the writer has closed " + redact(input.url)};
    } catch (const IoError& error) {
      if (read_stop_.stop_requested()) return;
      // Reading a file again from its start would deliver the first part twice.
      const bool final = parts_.options.once || (opened && !live_ && !refills);
      if (final) throw;
      lost = {error.code(), error.what()};
    } catch (const FeedError& error) {
      // What a camera sends once it has been good is its own mistake, not the configuration's.
      const bool camera = live_ && has_run_ && error.code() == FeedFault::kConfiguration;
      if (!camera || parts_.options.once) throw;
      if (read_stop_.stop_requested()) return;
      lost = {IoFault::kDecode, error.what()};
    }
    parts_.stats->count_reconnect(lost.first);
    // Writers of a FIFO take turns: waiting for the next one is no failure to back off from.
    if (lost.first == IoFault::kEof && refills && running_) continue;
    const auto wait = backoff_.next();
    parts_.stats->set_state(FeedState::kBackoff, lost.second);
    faults_.failed(lost.second, fmt::format("trying again in {:.1f} s",
                                            std::chrono::duration<double>(wait).count()));
    sleep_for(wait, read_stop_);
  }
}

Ingest::ReadAll Ingest::read_all(Source& source) {
  SourceItem item;
  for (;;) {
    switch (source.read(item)) {
      case ReadResult::kEnd:
        return ReadAll::kEnded;
      case ReadResult::kStopped:
        return ReadAll::kStopped;
      case ReadResult::kItem:
        break;
    }
    if (!pace(item, source.info())) return ReadAll::kStopped;
    if (item.kind == SourceItem::Kind::kPacket) {
      dispatch_packet(item, source.info());
    } else {
      dispatch_frame(std::move(item.frame), source.info());
    }
    if (read_stop_.stop_requested()) return ReadAll::kStopped;
  }
}

bool Ingest::pace(const SourceItem& item, const SourceInfo& source) {
  if (parts_.options.input.pace != InputOptions::Pace::kRealtime) return true;
  const bool packets = source.media != nullptr;
  std::int64_t time = 0;
  if (item.kind == SourceItem::Kind::kPacket) {
    if (item.stream != StreamKind::kVideo) return true;
    time = item.packet->dts;
  } else {
    if (packets) return true;  // its packet has been paced
    time = item.frame.pts;
  }
  return pacer_.wait_until(
      std::chrono::microseconds(av_rescale_q(time, source.time_base, {1, 1000000})), read_stop_);
}

// A frame, or a packet that some encode copies, has come: what the feed is there for.
void Ingest::delivered(const SourceInfo& source) {
  parts_.stats->arrived();
  backoff_.succeeded(Backoff::Clock::now());
  if (std::exchange(running_, true)) return;
  parts_.stats->set_state(FeedState::kRunning, "");
  const std::string what = describe(source, parts_.options.input);
  if (!faults_.recovered(what)) log::info("feed {}: running ({})", parts_.options.name, what);
}

void Ingest::dispatch_packet(const SourceItem& item, const SourceInfo& source) {
  follow_media(source);
  if (item.stream == StreamKind::kVideo && copies_) delivered(source);
  for (Branch& branch : parts_.branches) {
    if (item.stream == StreamKind::kAudio) {
      if (branch.options->copy_audio) dispatch_audio(branch, *item.packet, source);
    } else if (branch.options->copy_video) {
      branch.fanout->publish(*item.packet, StreamKind::kVideo, branch.media, cancel_);
      has_run_ = true;
    }
  }
}

void Ingest::dispatch_audio(Branch& branch, const AVPacket& packet, const SourceInfo& source) {
  // After a reconnect the sound may be another one than `media` says, until a picture is decoded.
  const bool known =
      branch.media != nullptr && (branch.source_media == source.media ||
                                  same_audio(branch.source_media.get(), source.media.get()));
  if (known) {
    branch.source_media = source.media;
    branch.fanout->publish(packet, StreamKind::kAudio, branch.media, cancel_);
    return;
  }
  if (branch.early_audio.size() == kMaxEarlyAudio) {
    count_lost_audio(branch, 1);
    return;
  }
  PacketPtr kept = make_packet();
  if (av_packet_ref(kept.get(), &packet) < 0) throw std::bad_alloc();
  branch.early_audio.push_back(std::move(kept));
}

void Ingest::count_lost_audio(const Branch& branch, std::size_t packets) {
  for (std::size_t i = 0; i < parts_.options.outputs.size(); ++i) {
    if (parts_.options.outputs[i].from != branch.options->name) continue;
    parts_.stats->outputs()[i].drop(PacketDrop::kWaitKeyframe, packets);
  }
}

void Ingest::drop_early_audio() {
  for (Branch& branch : parts_.branches) {
    count_lost_audio(branch, branch.early_audio.size());
    branch.early_audio.clear();
  }
}

void Ingest::set_media(Branch& branch, MediaFormatRef media) {
  branch.media = std::move(media);
  for (const PacketPtr& packet : branch.early_audio) {
    branch.fanout->publish(*packet, StreamKind::kAudio, branch.media, cancel_);
  }
  branch.early_audio.clear();
}

void Ingest::follow_liveness(const SourceInfo& source) {
  live_ = source.live;
  blocks_ = blocks_when_full(parts_.options.on_full, live_);
  for (Branch& branch : parts_.branches) branch.fanout->set_blocks(blocks_);
}

void Ingest::follow_media(const SourceInfo& source) {
  for (Branch& branch : parts_.branches) {
    if (!branch.options->copy_video || branch.source_media == source.media) continue;
    branch.source_media = source.media;
    // A new object even for a camera that comes back as it was: outputs go on in the same file, but
    // only from a keyframe on.
    set_media(branch, copied_media(*source.media, branch.options->copy_audio));
  }
}

void Ingest::follow_format(const InputFrame& frame, const SourceInfo& source) {
  const FrameFormat format = format_of(frame, source);
  const bool audio_changed = std::ranges::any_of(frame_branches_, [&](const Branch* branch) {
    return branch->options->copy_audio && branch->source_media != source.media &&
           !same_audio(branch->source_media.get(), source.media.get());
  });
  if (format_ == format && !audio_changed) return;

  // A decoder that leaves the GPU, or takes it again, is no reason to begin a new file.
  const bool same_pictures = !audio_changed && format_ && moved(*format_, format);
  std::vector<Conversion> conversions;
  for (Branch* branch : frame_branches_) {
    const bool audio = branch->options->copy_audio && source.media && source.media->audio;
    std::shared_ptr<EncodePlan> plan = branch->plan;
    const bool keeps_plan =
        same_pictures && plan && can_convert(conversion_between(format, plan->target));
    if (!keeps_plan) {
      const CallScope opening(parts_.stage_calls, kPrepareTime);  // NVENC's is the GPU's
      plan = make_encode_plan({.options = *branch->options,
                               .source = format,
                               .feed = parts_.options.name,
                               .device = parts_.stats->status().device,
                               .live = live_,
                               .global_header = branch->global_header,
                               .audio = audio ? &*source.media->audio : nullptr});
    }
    const Conversion conversion = conversion_between(format, plan->target);
    conversions.push_back(conversion);
    const bool bypass = is_identity(conversion) && format.memory == FrameMemory::kHost;
    branch->conversion = bypass ? std::nullopt : std::optional(conversion);
    log::info("feed {}: encode {}: {}x{} {} ({}) {} {} ({}), {}", parts_.options.name,
              branch->options->name, format.width, format.height, info(format.layout).name,
              describe(format.color), bypass ? "passed on as" : "to",
              info(plan->target.layout).name, describe(plan->target.color), plan->codec.name);
    branch->plan = std::move(plan);
    branch->source_media = source.media;
    set_media(*branch, branch->plan->media);
  }
  follow_analysis(conversions.front().target);
  const CallScope preparing(parts_.stage_calls, kPrepareTime);
  plan_.reset();  // first: the old one's memory goes with its last job in flight
  plan_ = parts_.stage->prepare(conversions, format.memory, analyses_);
  format_ = format;
}

// What an encoder takes is known only now, so that the configuration cannot be refused for it.
void Ingest::follow_analysis(PixelFormat encoded) {
  analyses_ = parts_.options.analyse && has_luma(encoded);
  if (analyses_ || !parts_.options.analyse) return;
  const EncodeOptions& encode = *frame_branches_.front()->options;
  log::warn(
      "feed {}: encode {} takes {}, which has no luma, so that nothing is analysed; give it "
      "convert.format: yuv420p or another YUV format",
      parts_.options.name, encode.name, info(encoded).name);
}

std::optional<FrameRing::Place> Ingest::take_place() {
  if (!blocks_) return parts_.ring->try_acquire();
  const auto start = Clock::now();
  auto place = parts_.ring->acquire(cancel_);  // a drain still encodes what has been read
  parts_.stats->observe(StageStep::kWait, Clock::now() - start);
  return place;
}

void Ingest::drop_tickets(DropReason reason) {
  for (FrameTicket& ticket : tickets_) {
    if (ticket) ticket.drop(reason);
  }
}

void Ingest::dispatch_frame(InputFrame&& frame, const SourceInfo& source) {
  delivered(source);
  open_tickets(parts_.stats, tickets_);
  try {
    follow_format(frame, source);
    has_run_ = true;
    submit(std::move(frame));
  } catch (...) {
    drop_tickets(DropReason::kFeedFailed);
    throw;
  }
}

void Ingest::submit(InputFrame&& frame) {
  auto place = take_place();
  const CallScope submitting(parts_.stage_calls, kStageCall);
  if (!place) {
    frame.buffer = {};  // a decoder on a GPU takes it back in a call
    const bool ending = cancel_.stop_requested() || parts_.ring->closed();
    drop_tickets(ending ? parts_.cancel_reason.load() : DropReason::kRingFull);
    return;
  }
  FrameJob& job = **place;
  job.plan = plan_;
  bool converts = false;
  job.analyse = analyses_;
  for (std::size_t i = 0; i < frame_branches_.size(); ++i) {
    const Branch& branch = *frame_branches_[i];
    job.outputs[i].converts = branch.conversion.has_value();
    if (branch.conversion) {
      converts = true;
      const std::size_t extra = job.analyse && i == 0 ? sizeof(LumaHistogram) : 0;
      job.outputs[i].target =
          allocate_image(*branch.pool, branch.conversion->target, branch.conversion->width,
                         branch.conversion->height, extra);
    }
    job.outputs[i].encode_plan = branch.plan;
  }
  // Nothing throws from here on.
  job.input = std::move(frame);
  for (std::size_t i = 0; i < tickets_.size(); ++i) job.outputs[i].ticket = std::move(tickets_[i]);
  auto& ready = parts_.stats->ring_jobs[index_of(RingState::kReady)];
  if (!converts) {
    job.converted = true;
    ++ready;
  }
  if (!place->publish()) {
    if (!converts) --ready;
    for (JobOutput& output : job.outputs) output.ticket.drop(parts_.cancel_reason);
    return;
  }
  // Whoever takes a converted target waits for it, so the job stays until the stage is through.
  if (converts) parts_.stage->submit(job);
}

}  // namespace framelane
