#include "pipeline/feed/source_loop.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
}

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/packets/interleaver.hpp"
#include "pipeline/source/input_options.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

std::string describe(const SourceInfo& source, const InputOptions& input) {
  if (input.raw) {
    return fmt::format("{} {}x{}", input.raw->pixel_format, input.raw->width, input.raw->height);
  }
  const AVCodecParameters& video = *source.media->video.parameters;
  return fmt::format("{} {}x{}", avcodec_get_name(video.codec_id), video.width, video.height);
}

IoError no_longer_live(const InputOptions& input) {
  return IoError(IoFault::kEof, redact(input.url) +
                                    " was live, and is a finished playlist or a file now; it is "
                                    "read when it is live again");
}

/// However a source ends, audio that still waits for a video format is lost.
struct EarlyAudioScope {
  PacketDispatch& packets;
  ~EarlyAudioScope() { packets.drop_early_audio(); }
};

}  // namespace

SourceLoop::SourceLoop(Parts parts)
    : parts_(parts),
      read_stop_(parts_.source_calls.stop()),
      run_(parts_.stats.run()),
      timeline_(parts_.stats, parts_.line_clock),
      backoff_(parts_.options.input.reconnect),
      faults_("feed " + parts_.options.name),
      on_full_(parts_.options.on_full) {}

void SourceLoop::run() {
  while (!read_stop_.stop_requested()) {
    take_changes();
    const std::optional<Loss> lost = run_source();
    if (!lost) return;
    parts_.stats.count_reconnect(lost->fault);
    if (!lost->waits) continue;
    const auto wait = backoff_.next();
    parts_.stats.set_state(run_, FeedState::kBackoff, lost->reason, fault_code(lost->fault));
    faults_.failed(
        fault_code(lost->fault), lost->reason,
        fmt::format("trying again in {:.1f} s", std::chrono::duration<double>(wait).count()));
    wait_before_retry(wait);
  }
}

void SourceLoop::wait_before_retry(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  while (!read_stop_.stop_requested() && Clock::now() < until) {
    parts_.changes.wait_until(until, read_stop_);
    if (take_changes()) return;
  }
}

bool SourceLoop::take_changes() {
  if (!parts_.changes.any()) return false;
  bool reconnects = false;
  for (const RunChanges::Change& change : parts_.changes.take()) {
    parts_.packets.change(change);
    if (parts_.frames != nullptr) parts_.frames->change(change);
    if (change.masks) masks_ = change.masks;
    on_full_ = change.options->on_full;
    reconnects = backoff_.set_options(change.options->input.reconnect) || reconnects;
    parts_.changes.let_go(change.removed);
  }
  apply_liveness();
  return reconnects;
}

void SourceLoop::close() {
  parts_.changes.close();
  // Those that were to go end with all others.
  for (const RunChanges::Change& change : parts_.changes.take()) {
    parts_.packets.change({.options = change.options, .added = change.added, .removed = {}});
  }
}

std::optional<SourceLoop::Loss> SourceLoop::run_source() {
  const InputOptions& input = parts_.options.input;
  const bool once = parts_.options.once;
  const SourceContext context{.pool = pool_,
                              .stats = parts_.stats,
                              .timeline = timeline_,
                              .interrupt = parts_.source_calls,
                              .decode = parts_.frames != nullptr,
                              .want_audio = parts_.packets.wants_audio(),
                              .pipe = &pipe_,
                              .said = &said_,
                              .stage = parts_.stage,
                              .ring = parts_.options.ring};
  running_ = false;
  bool opened = false;
  bool refills = false;
  const EarlyAudioScope early_audio{parts_.packets};
  try {
    // The status goes on showing why the last source was lost until this one delivers.
    parts_.stats.set_state(run_, FeedState::kConnecting, parts_.stats.status().reason);
    const std::unique_ptr<Source> source = open_source(input, context);
    // Asked before anything is written: the stop may be long ago, and this thread abandoned since.
    if (read_stop_.stop_requested()) return std::nullopt;
    opened = true;
    if (live_ && has_run_ && !source->info().live) {
      // Read as a file, it would deliver once more what it delivered while it was live.
      throw no_longer_live(input);
    }
    live_ = source->info().live;
    apply_liveness();
    // A FIFO's writers come and go; the end of a file is final.
    refills = !once && names_fifo(input.url);
    parts_.stats.set_decoder(source->info().decoder);
    const ReadAll end = read_all(*source);
    parts_.packets.finish_audio();
    if (end == ReadAll::kStopped) return std::nullopt;
    // Of live sources only a playlist ends.
    if (live_ && !once) throw no_longer_live(input);
    if (!refills && !running_) {
      throw IoError(IoFault::kDecode, redact(input.url) + " ended without one " +
                                          (context.decode ? "frame" : "packet of video") +
                                          " that could be read; check the file");
    }
    if (!refills) return std::nullopt;
    // Writers of a FIFO take turns: to wait for the next one is no failure to back off from.
    return Loss{.fault = IoFault::kEof,
                .reason = "the writer has closed " + redact(input.url),
                .waits = !running_};
  } catch (const IoError& error) {
    parts_.packets.finish_audio();
    if (read_stop_.stop_requested()) return std::nullopt;
    // Reading a file again from its start would deliver the first part twice.
    const bool final = once || (opened && !live_ && !refills);
    if (final) throw;
    return Loss{.fault = error.code(),
                .reason = error.what(),
                .waits = !(error.code() == IoFault::kEof && refills && running_)};
  } catch (const FeedError& error) {
    // A camera that was good before and now sends what no encode takes is at fault itself; the
    // configuration is not.
    const bool camera = live_ && has_run_ && error.code() == FeedFault::kConfiguration;
    if (!camera || once) throw;
    parts_.packets.finish_audio();
    if (read_stop_.stop_requested()) return std::nullopt;
    return Loss{.fault = IoFault::kDecode, .reason = error.what()};
  }
}

SourceLoop::ReadAll SourceLoop::read_all(Source& source) {
  SourceItem item;
  for (;;) {
    const auto gone_at = running_ ? parts_.line_clock.gone_at() : std::nullopt;
    switch (source.read(item)) {
      case ReadResult::kEnd:
        return ReadAll::kEnded;
      case ReadResult::kStopped:
        return ReadAll::kStopped;
      case ReadResult::kItem:
        break;
    }
    // A gap in recordings, though no call has failed.
    if (gone_at && !item.held_back && Clock::now() > *gone_at) {
      parts_.stats.set_state(run_, FeedState::kRunning, "", fault_code(IoFault::kTimeout));
    }
    if (!pace(item, source.info())) return ReadAll::kStopped;
    dispatch(item, source.info());
    if (read_stop_.stop_requested()) return ReadAll::kStopped;
  }
}

bool SourceLoop::pace(const SourceItem& item, const SourceInfo& source) {
  if (parts_.options.input.pace != InputOptions::Pace::kRealtime) return true;
  const bool packets = source.media != nullptr;
  std::int64_t time = 0;
  if (item.kind == SourceItem::Kind::kPacket) {
    if (item.stream != StreamKind::kVideo) return true;
    time = item.packet->dts;
  } else {
    if (packets) return true;  // the packet it came from was paced
    time = item.frame.pts;
  }
  const std::chrono::microseconds media_time(av_rescale_q(time, source.time_base, {1, 1000000}));
  const bool goes_on = pacer_.wait_until(media_time, Clock::now(), read_stop_);
  parts_.line_clock.set_due(*pacer_.origin());
  return goes_on;
}

void SourceLoop::dispatch(SourceItem& item, const SourceInfo& source) {
  const LineClock::Busy busy(parts_.line_clock);  // opening an encoder may take long
  take_changes();
  note_format(source);
  parts_.packets.set_source(source.media);
  if (item.kind == SourceItem::Kind::kFrame) {
    const std::int64_t time_us = av_rescale_q(item.frame.pts, source.time_base, AV_TIME_BASE_Q);
    note_delivery(item, source, time_us);
    if (const auto masks = std::exchange(masks_, std::nullopt)) {
      parts_.tap->masks_begin(*masks, time_us);
    }
    parts_.frames->dispatch(std::move(item.frame), source);
    has_run_ = true;
    return;
  }
  const bool copied_video = item.stream == StreamKind::kVideo && parts_.packets.copies_video();
  if (copied_video) {
    note_delivery(item, source, frame_time_us(*item.packet, *source.media));
    if (std::exchange(shown_media_, source.media) != source.media) {
      const AVCodecParameters& video = *source.media->video.parameters;
      parts_.stats.set_size(video.width, video.height);
    }
  }
  parts_.packets.dispatch(*item.packet, item.stream, *source.media);
  if (copied_video) has_run_ = true;
}

/// A frame has come, or a video packet that some encode copies: the source works. Called before the
/// dispatch: that may wait for room in the ring or a queue, or throw, and neither is the source's
/// fault.
void SourceLoop::note_delivery(const SourceItem& item, const SourceInfo& source,
                               std::int64_t time_us) {
  if (!item.held_back) parts_.stats.arrived(run_);
  backoff_.succeeded(Clock::now());
  if (std::exchange(running_, true)) return;
  if (parts_.tap != nullptr) parts_.tap->source_begins(time_us);
  if (!parts_.stats.set_state(run_, FeedState::kRunning, "")) return;
  const std::string what = describe(source, parts_.options.input);
  if (!faults_.recovered(what)) log::info("feed {}: running ({})", parts_.options.name, what);
}

void SourceLoop::note_format(const SourceInfo& source) {
  if (std::exchange(has_format_, true) && source.media == media_) return;
  media_ = source.media;
  parts_.stats.set_format(describe(source, parts_.options.input));
}

void SourceLoop::apply_liveness() {
  parts_.packets.set_blocks(blocks_when_full(on_full_, live_));
  parts_.packets.set_live(live_);
}

}  // namespace framelane
