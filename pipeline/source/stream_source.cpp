#include "pipeline/source/stream_source.hpp"

extern "C" {
#include <libavutil/common.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

StreamFormat audio_format(const Demuxer& demuxer) {
  const AVCodecParameters& audio = *demuxer.audio()->codecpar;
  return {.parameters = copy_parameters(audio),
          .time_base = demuxer.time_base(StreamKind::kAudio),
          .frame_rate = {0, 1},
          .decode_refusal = demuxer.access().refusal_of_codec(audio.codec_id).value_or("")};
}

void set_extradata(AVCodecParameters& parameters, const std::uint8_t* data, std::size_t size) {
  auto* copy = static_cast<std::uint8_t*>(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, data, size);
  av_freep(&parameters.extradata);
  parameters.extradata = copy;
  parameters.extradata_size = static_cast<int>(size);
}

}  // namespace

StreamSource::StreamSource(const InputOptions& input, const SourceContext& context)
    : input_(input),
      context_(context),
      packet_(make_packet()),
      importer_(context.pool, context.stats, input.color) {
  open();
}

void StreamSource::open() {
  demuxer_ = std::make_unique<Demuxer>(input_, context_.want_audio, context_.stats,
                                       context_.interrupt, context_.pipe);
  const AVStream& video = demuxer_->video();
  info_.time_base = demuxer_->time_base(StreamKind::kVideo);
  info_.frame_rate = demuxer_->frame_rate();
  info_.live = demuxer_->live();
  if (context_.decode) open_decoder();
  if (const auto key = demuxer_->options().unconsumed(input_.options)) {
    const std::string who = "the demuxer and protocol of " + demuxer_->name();
    throw FeedError(
        FeedFault::kConfiguration,
        "nothing takes the option " + *key + ": " +
            (decoder_ ? "neither " + who + " nor the decoder " + info_.decoder + " knows it"
                      : who + " do not know it") +
            "; correct or remove input.options." + *key);
  }
  MediaFormatRef media = make_media();
  // A file that was opened again for a loop has the same format: outputs go on.
  if (!info_.media || !same_format(*info_.media, *media)) info_.media = std::move(media);
  seen_ = copy_parameters(*video.codecpar);
  headers_ = std::make_unique<KeyframeHeaders>(*video.codecpar);
}

// The decoder's calls are armed in the Interrupt too, though they do no I/O: on a GPU that hangs
// they never return, and the Interrupt tells whoever watches this thread.
void StreamSource::open_decoder() {
  const CallScope opening(context_.interrupt, input_.timeout);
  const AVStream& video = demuxer_->video();
  decoder_ =
      std::make_unique<Decoder>(*video.codecpar, info_.time_base, info_.frame_rate,
                                demuxer_->options(), input_, info_.live, context_, importer_);
  info_.decoder = decoder_->name();
}

void StreamSource::flush_decoder() {
  const CallScope flushing(context_.interrupt, input_.timeout);
  decoder_->reset();
}

void StreamSource::close_decoder() {
  const CallScope closing(context_.interrupt, input_.timeout);
  decoder_.reset();
}

/// The first packet of a segment has come.
void StreamSource::begin_segment() {
  context_.timeline.begin_segment(segment_start(), lead_in_.delay());
  for (const StreamKind kind : {StreamKind::kVideo, StreamKind::kAudio}) {
    if (kind == StreamKind::kAudio && demuxer_->audio() == nullptr) continue;
    context_.timeline.set_stream(kind, demuxer_->clock_of(kind));
  }
}

std::optional<std::chrono::microseconds> StreamSource::segment_start() const {
  const auto start = demuxer_->start();
  return lead_in_.start() ? std::min(*lead_in_.start(), start.value_or(*lead_in_.start())) : start;
}

MediaFormatRef StreamSource::make_media() const {
  auto media = std::make_shared<MediaFormat>();
  media->video = {.parameters = copy_parameters(*demuxer_->video().codecpar),
                  .time_base = info_.time_base,
                  .frame_rate = info_.frame_rate};
  if (demuxer_->audio() != nullptr) media->audio = audio_format(*demuxer_);
  return media;
}

/// Makes a new MediaFormat if the format changes with this packet, so that packets of two formats
/// do not go into one file. Demuxers report a change by new parameters, by new extradata, or not at
/// all: then the keyframe's own headers tell.
void StreamSource::apply_format(const AVPacket& packet) {
  const AVCodecParameters& now = *demuxer_->video().codecpar;
  const bool resized =
      now.width != seen_->width || now.height != seen_->height || now.codec_id != seen_->codec_id;
  std::size_t size = 0;
  const std::uint8_t* extradata =
      av_packet_get_side_data(&packet, AV_PKT_DATA_NEW_EXTRADATA, &size);
  const AVCodecParameters& known = *info_.media->video.parameters;
  const bool described_anew = extradata != nullptr && size > 0 &&
                              (std::cmp_not_equal(size, known.extradata_size) ||
                               std::memcmp(extradata, known.extradata, size) != 0);
  const std::optional<KeyframeHeaders::Change> in_band = headers_->read(packet);
  if (!resized && !described_anew && !in_band) return;

  seen_ = copy_parameters(now);
  CodecParametersPtr parameters = copy_parameters(resized ? now : known);
  if (described_anew) {
    set_extradata(*parameters, extradata, size);
  } else if (in_band) {
    parameters->width = in_band->width;
    parameters->height = in_band->height;
    if (!in_band->extradata.empty()) {
      set_extradata(*parameters, in_band->extradata.data(), in_band->extradata.size());
    }
  }
  if (decoder_) demuxer_->require_size(parameters->width, parameters->height);
  auto media = std::make_shared<MediaFormat>();
  media->video = {.parameters = std::move(parameters),
                  .time_base = info_.time_base,
                  .frame_rate = info_.frame_rate};
  if (demuxer_->audio() != nullptr) media->audio = audio_format(*demuxer_);
  info_.media = std::move(media);
}

ReadResult StreamSource::read(SourceItem& item) {
  for (;;) {
    if (context_.interrupt.stopped()) return ReadResult::kStopped;
    switch (step_) {
      case Step::kRead:
        if (take_packet(item)) return ReadResult::kItem;
        break;
      case Step::kDecode:
        decode(packet_.get());
        break;
      case Step::kReceive:
        switch (receive(item.frame)) {
          case Decoder::Flow::kReady:
            productive_ = true;
            if (past_end(item.frame.pts, info_.time_base)) break;
            item.kind = SourceItem::Kind::kFrame;
            item.stream = StreamKind::kVideo;
            item.packet = nullptr;
            item.held_back = loss_ || demuxer_->silent();
            return ReadResult::kItem;
          case Decoder::Flow::kNeedInput:
            step_ = Step::kRead;
            break;
          case Decoder::Flow::kEndOfStream:
            step_ = Step::kFinish;
            break;
        }
        break;
      case Step::kFinish:
        if (!begin_again()) return ReadResult::kEnd;
        break;
    }
  }
}

/// Reads and stamps a packet. False when there is none to hand on: after a loss, a stop or the end,
/// or because it lies behind input.duration or repeats an earlier one.
bool StreamSource::take_packet(SourceItem& item) {
  av_packet_unref(packet_.get());
  Demuxer::Flow flow = Demuxer::Flow::kEnd;
  std::chrono::steady_clock::time_point arrived;
  try {
    flow = lead_in_.read(*demuxer_, *packet_, arrived);
  } catch (const IoError&) {
    loss_ = std::current_exception();
  }
  if (flow != Demuxer::Flow::kPacket) {
    if (flow == Demuxer::Flow::kEnd) finish_decoding();
    return false;
  }

  if (!std::exchange(segment_begun_, true)) begin_segment();
  const StreamKind kind = demuxer_->kind_of(*packet_);
  const bool repeated = !context_.timeline.stamp(kind, *packet_, arrived);
  const bool video = kind == StreamKind::kVideo;
  const AVRational time_base = demuxer_->time_base(kind);
  if (video && input_.duration && !end_us_) {
    const std::int64_t first = packet_->pts != AV_NOPTS_VALUE ? packet_->pts : packet_->dts;
    end_us_ =
        av_sat_add64(av_rescale_q(first, time_base, AV_TIME_BASE_Q), input_.duration->count());
  }
  if (past_end(packet_->dts, time_base)) {
    done_ = done_ || video;
    if (video) finish_decoding();
    return false;
  }
  if (video) {
    apply_format(*packet_);
    if (decoder_) {
      step_ = Step::kDecode;
    } else {
      productive_ = true;
    }
  }
  if (video && packet_->pts != AV_NOPTS_VALUE) {
    const std::int64_t frame = av_rescale_q(packet_->pts, time_base, AV_TIME_BASE_Q);
    set_frame(*packet_, frame);
    context_.stats.trace().mark(TraceKind::kPacket, frame);
  }
  if (repeated) return false;  // it is decoded, since others refer to it
  item.kind = SourceItem::Kind::kPacket;
  item.stream = kind;
  item.packet = packet_.get();
  item.held_back = demuxer_->silent();
  return true;
}

void StreamSource::finish_decoding() {
  step_ = Step::kFinish;
  if (decoder_) decode(nullptr);
}

void StreamSource::decode(AVPacket* packet) {
  const CallScope decoding(context_.interrupt, input_.timeout);
  decoder_->send(packet);
  step_ = Step::kReceive;
}

Decoder::Flow StreamSource::receive(InputFrame& frame) {
  const CallScope decoding(context_.interrupt, input_.timeout);
  return decoder_->receive(frame);
}

/// The packets have ended and the decoder is empty: true when the file is read again from its
/// start.
bool StreamSource::begin_again() {
  if (loss_) std::rethrow_exception(std::exchange(loss_, nullptr));
  if (done_) return false;
  if (!input_.loop) {
    if (info_.live && is_finished_playlist()) return false;
    if (context_.pipe != nullptr) context_.pipe->reader = demuxer_->take_fifo();
    if (!info_.live) return false;
    throw IoError(IoFault::kEof, demuxer_->name() + " ended; a live source should not");
  }
  if (!productive_) {
    throw IoError(IoFault::kDecode, demuxer_->name() + " cannot be looped: not one frame came " +
                                        "out of it; check the file");
  }
  lead_in_.restart();
  segment_begun_ = productive_ = false;
  if (demuxer_->rewind()) {
    if (decoder_) flush_decoder();
  } else {
    close_decoder();
    demuxer_.reset();
    open();
  }
  step_ = Step::kRead;
  return true;
}

/// FFmpeg ends a growing playlist alike when it is finished and when it cannot be read any more.
/// Which of the two it was shows when it is opened again. Throws IoError if that fails.
bool StreamSource::is_finished_playlist() const {
  return demuxer_->playlist() && !Demuxer(input_, false, context_.stats, context_.interrupt).live();
}

bool StreamSource::past_end(std::int64_t timestamp, AVRational time_base) const {
  return end_us_ && av_compare_ts(timestamp, time_base, *end_us_, AV_TIME_BASE_Q) >= 0;
}

}  // namespace framelane
