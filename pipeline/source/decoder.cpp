#include "pipeline/source/decoder.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/processors.hpp"
#include "pipeline/source/direct_buffer.hpp"
#include "pipeline/source/png_text.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

void allow_threaded_callbacks([[maybe_unused]] AVCodecContext& context) {
#if LIBAVCODEC_VERSION_MAJOR < 60
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  context.thread_safe_callbacks = 1;  // later versions take it for granted
#pragma GCC diagnostic pop
#endif
}

std::int64_t duration_of(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
  return frame.duration;
#else
  return frame.pkt_duration;
#endif
}

/// Gives the packet that is sent next a number, which FFmpeg hands on to the packet's frame.
void set_number([[maybe_unused]] AVCodecContext& context, [[maybe_unused]] AVPacket& packet,
                std::int64_t number) {
#if LIBAVCODEC_VERSION_MAJOR < 60
  context.reordered_opaque = number;
#else
  packet.opaque = reinterpret_cast<void*>(static_cast<std::intptr_t>(number));
#endif
}

std::int64_t number_of(const AVFrame& frame) {
#if LIBAVCODEC_VERSION_MAJOR < 60
  return frame.reordered_opaque;
#else
  return reinterpret_cast<std::intptr_t>(frame.opaque);
#endif
}

/// Where the codec's own standard puts chroma, for decoders that do not say: between the luma
/// samples in JPEG (JFIF) and in the codecs of the H.261 family before MPEG-2. Others are left
/// unspecified, which counts as left.
AVChromaLocation standard_location(AVCodecID codec) {
  switch (codec) {
    case AV_CODEC_ID_MJPEG:
    case AV_CODEC_ID_MJPEGB:
    case AV_CODEC_ID_LJPEG:
    case AV_CODEC_ID_SMVJPEG:
    case AV_CODEC_ID_AMV:
    case AV_CODEC_ID_WEBP:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_H261:
    case AV_CODEC_ID_H263:
    case AV_CODEC_ID_FLV1:
    case AV_CODEC_ID_THEORA:
      return AVCHROMA_LOC_CENTER;
    default:
      return AVCHROMA_LOC_UNSPECIFIED;
  }
}

FeedError no_memory() {
  return FeedError(
      FeedFault::kMemory,
      "the decoder got no memory for a frame; if there is enough, the picture needs "
      "more of it in one piece than input.limits.pixels stands for: raise that if the input "
      "is right");
}

}  // namespace

Decoder::Decoder(const AVCodecParameters& parameters, AVRational time_base, AVRational frame_rate,
                 Dictionary& options, const InputOptions& input, bool live,
                 const SourceContext& context, FrameImporter& importer)
    : parameters_(copy_parameters(parameters)),
      time_base_(time_base),
      frame_rate_(frame_rate),
      live_(live),
      skip_(input.skip),
      access_(input),
      coded_pixels_(input.limits.coded_pixels()),
      pool_(context.pool),
      stats_(context.stats),
      timeline_(context.timeline),
      importer_(importer),
      options_(options.copy()),
      nvdec_(input.decoder, context.stage, context.ring, context.stats),
      account_(context.stats,
               [this] {
                 log::info(
                     "feed {}: not every packet can be decoded; decode_errors counts those that "
                     "cannot, and at log level debug {} says why",
                     stats_.feed(), name());
               }),
      frame_(make_frame()) {
  if (!open_on_gpu(options)) open_in_software(options);
}

std::string Decoder::name() const {
  return nvdec_.active() ? nvdec_name(*context_->codec) : context_->codec->name;
}

/// False when NVDEC cannot be had: the trial is over then, and has said why.
bool Decoder::open_on_gpu(Dictionary& options) {
  const AVCodec* codec = nvdec_.begin(parameters_->codec_id);
  if (codec == nullptr) return false;
  std::string why;
  FeedFault fault = FeedFault::kConfiguration;
  if (!access_.allows(*codec)) {
    why = std::string("input.decoders does not allow ") + codec->name;
  } else {
    Dictionary left = options.copy();
    const AvLogCapture log;
    const int error = open(*codec, left);
    if (error >= 0) {
      options = std::move(left);
      return true;
    }
    if (is_shortage(error)) fault = FeedFault::kMemory;
    // Some decoders ask for the format already here, and may have been refused it.
    why = nvdec_.take_refusal();
    if (why.empty()) {
      why = std::string("the decoder ") + codec->name +
            " does not open on the GPU: " + log.reason(av_error_text(error));
    }
  }
  nvdec_.leave(fault, why);
  return false;
}

void Decoder::open_in_software(Dictionary& options) {
  const AVCodec* codec = avcodec_find_decoder(parameters_->codec_id);
  if (const auto refusal = access_.refusal_of_codec(parameters_->codec_id)) {
    stats_.count(DecodeFault::kUnsupported);
    throw FeedError(FeedFault::kConfiguration, "the source's video " + *refusal);
  }
  if (codec == nullptr) {
    stats_.count(DecodeFault::kUnsupported);
    throw FeedError(FeedFault::kConfiguration,
                    std::string("FFmpeg has no decoder for the source's codec ") +
                        avcodec_get_name(parameters_->codec_id) +
                        "; use video: copy, or set the camera to another codec");
  }
  if (const int error = open(*codec, options); error < 0) {
    if (is_shortage(error)) {
      throw FeedError(FeedFault::kMemory,
                      std::string("the decoder ") + codec->name +
                          " does not open: " + shortage_text(av_error_text(error)));
    }
    stats_.count(DecodeFault::kUnsupported);
    throw FeedError(FeedFault::kConfiguration, std::string("the decoder ") + codec->name +
                                                   " refuses the stream (" + av_error_text(error) +
                                                   "); check the values of input.options");
  }
}

/// Opens `codec`, on the GPU while the trial is active, and closes what was open. Returns FFmpeg's
/// error.
int Decoder::open(const AVCodec& codec, Dictionary& options) {
  context_.reset(avcodec_alloc_context3(&codec));
  if (!context_ || avcodec_parameters_to_context(context_.get(), parameters_.get()) < 0) {
    throw no_memory();
  }
  context_->pkt_timebase = time_base_;
  context_->framerate = frame_rate_;
  if (nvdec_.active()) {
    // Frame threads would only hold more surfaces; the option `threads` changes nothing either.
    context_->thread_count = 1;
    context_->thread_type = 0;
    context_->hw_device_ctx = BufferRef(nvdec_.device()).release();
    context_->get_format = &Decoder::choose_format;
#ifdef AV_HWACCEL_FLAG_UNSAFE_OUTPUT
    // Frames are NVDEC's surfaces themselves, as in FFmpeg's earlier versions: NvdecTrial asks for
    // enough of them.
    context_->hwaccel_flags |= AV_HWACCEL_FLAG_UNSAFE_OUTPUT;
#endif
  } else {
    context_->thread_count = codec_threads(live_);  // the option `threads` overrides
    context_->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
    silence();
  }
  context_->max_pixels = coded_pixels_;
  if (skip_ == Skip::kNonRef) context_->skip_frame = AVDISCARD_NONREF;
  if (skip_ == Skip::kNonKey) context_->skip_frame = AVDISCARD_NONKEY;
  // Crop exactly as the stream says: our views need no aligned start.
  context_->flags |= AV_CODEC_FLAG_UNALIGNED;
#if LIBAVCODEC_VERSION_MAJOR >= 60
  context_->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#endif
  context_->opaque = this;
  context_->get_buffer2 = &Decoder::get_buffer;
  allow_threaded_callbacks(*context_);
  return avcodec_open2(context_.get(), &codec, options.ptr());
}

/// Moves the decoder's errors to log level debug: damage is counted, and what the decoder says
/// about it is for those who look for it.
void Decoder::silence() { context_->log_level_offset = AV_LOG_INFO - AV_LOG_ERROR; }

void Decoder::change_to_software(FeedFault fault, const std::string& why) {
  nvdec_.leave(fault, why);
  const std::optional<std::int64_t> first = nvdec_.begin_replay();
  Dictionary options = options_.copy();
  open_in_software(options);
  // Packets that only NVDEC received give no more frames.
  if (nvdec_.proven()) account_.account_up_to(first ? *first - 1 : account_.last_packet());
  account_.decoder_replaced();
  stats_.set_decoder(name());
}

void Decoder::send(AVPacket* packet) {
  if (packet != nullptr) {
    if (context_->codec_id == AV_CODEC_ID_PNG) drop_png_texts(*packet);
    set_number(*context_, *packet, account_.packet_sent(expectation_of(*packet)));
  }
  if (nvdec_.active()) {
    nvdec_.remember_for_replay(packet, account_.last_packet());
    if (!nvdec_.stage_takes_frames()) {
      return change_to_software(FeedFault::kDevice, "the feed has left the GPU");
    }
  }
  const int error = send_to_ffmpeg(packet);
  if (error < 0 && error != AVERROR_EOF && nvdec_.refusal().empty()) failed(error);
}

PacketAccount::Expect Decoder::expectation_of(const AVPacket& packet) const {
  if ((packet.flags & AV_PKT_FLAG_CORRUPT) != 0) return PacketAccount::Expect::kTruncated;
  // Packets are discarded by an edit list. Others are skipped for the feed's `skip`, or FFmpeg's
  // own option skip_frame.
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return PacketAccount::Expect::kLeftOut;
  return context_->skip_frame > AVDISCARD_DEFAULT ? PacketAccount::Expect::kSkipped
                                                  : PacketAccount::Expect::kFrame;
}

int Decoder::send_to_ffmpeg(AVPacket* packet) {
  // NVDEC's first failure is explained in FFmpeg's log, at level error: it goes into our message.
  std::optional<AvLogCapture> log;
  if (nvdec_.active() && !nvdec_.proven()) log.emplace();
  const Clock::time_point begin = Clock::now();
  const bool timed = packet != nullptr && packet->pts != AV_NOPTS_VALUE;
  const BusyMeter::Scope busy(
      stats_.decode_busy, stats_.trace(), TraceKind::kDecode,
      timed ? av_rescale_q(packet->pts, context_->pkt_timebase, AV_TIME_BASE_Q)
            : FlightRecorder::kNoFrame);
  const int error = avcodec_send_packet(context_.get(), packet);
  working_ += Clock::now() - begin;
  return error;
}

int Decoder::receive_from_ffmpeg() {
  std::optional<AvLogCapture> log;
  if (nvdec_.active() && !nvdec_.proven()) log.emplace();
  const Clock::time_point begin = Clock::now();
  const BusyMeter::Scope busy(stats_.decode_busy, stats_.trace(), TraceKind::kDecode);
  const int result = avcodec_receive_frame(context_.get(), frame_.get());
  working_ += Clock::now() - begin;
  return result;
}

Decoder::Flow Decoder::receive(InputFrame& frame) {
  for (;;) {
    const int result = receive_from_ffmpeg();
    if (apply_refusal(result)) continue;
    if (result == AVERROR(EAGAIN)) {
      if (replay_packet()) continue;
      return Flow::kNeedInput;
    }
    if (result == AVERROR_EOF) {
      account_.account_up_to(account_.last_packet());
      return Flow::kEndOfStream;
    }
    if (result < 0) {
      failed(result);
      continue;
    }
    if (nvdec_.active() && nvdec_.frame_came(*frame_, *context_->codec)) {
      stats_.set_decoder(name());
      silence();
    }
    if (deliver(frame)) return Flow::kReady;
  }
}

/// If NVDEC has refused the packet that was sent last, takes out the frames of the packets before
/// it, and then lets software have that packet. True when receive() has to begin again.
bool Decoder::apply_refusal(int result) {
  if (nvdec_.refusal().empty() || result >= 0) return false;
  if (nvdec_.begin_emptying()) {
    send_to_ffmpeg(nullptr);
  } else {
    change_to_software(FeedFault::kConfiguration, nvdec_.take_refusal());
  }
  return true;
}

/// Sends software the next of the packets that it has to decode again; false: none is left.
bool Decoder::replay_packet() {
  const std::optional<NvdecTrial::ReplayPacket> next = nvdec_.next_replay();
  if (!next) return false;
  if (next->packet) set_number(*context_, *next->packet, next->number);
  const int error = send_to_ffmpeg(next->packet.get());
  if (error < 0 && error != AVERROR_EOF) failed(error);
  return true;
}

/// Hands on the frame that FFmpeg gave. False if it repeats one from before the source was lost.
bool Decoder::deliver(InputFrame& frame) {
  account_.frame_received(number_of(*frame_), frame_->decode_error_flags != 0 ||
                                                  (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0);
  if (frame_->chroma_location == AVCHROMA_LOC_UNSPECIFIED) {
    frame_->chroma_location = standard_location(context_->codec_id);
  }
  const std::int64_t duration = duration_of(*frame_);
  const auto pts = timeline_.stamp_frame(frame_->best_effort_timestamp, duration);
  if (pts) {
    frame = importer_.import(*frame_);
    frame.duration = duration;
    frame.pts = *pts;
    frame.decoded_at = Clock::now();
    stats_.observe(StageStep::kDecode, working_);
    working_ = {};
  }
  av_frame_unref(frame_.get());
  return pts.has_value();
}

/// Treats an error that FFmpeg returned for a packet or instead of a frame.
void Decoder::failed(int error) {
  {
    const std::lock_guard lock(exception_mutex_);
    if (exception_) std::rethrow_exception(exception_);
  }
  if (nvdec_.must_end(error)) {
    return change_to_software(FeedFault::kDevice, "NVDEC fails: " + av_error_text(error));
  }
  if (error == AVERROR(ENOMEM)) throw no_memory();
  nvdec_.forget_damaged();
  account_.decoder_failed(error == AVERROR_PATCHWELCOME || error == AVERROR(ENOSYS)
                              ? DecodeFault::kUnsupported
                              : DecodeFault::kCorrupt);
}

void Decoder::reset() {
  avcodec_flush_buffers(context_.get());
  nvdec_.forget_packets();
  account_.reset();
  working_ = {};
}

/// Holds the exception that is being handled, which must not pass through C, for failed(). Any
/// thread.
void Decoder::hold_exception() noexcept {
  const std::lock_guard lock(exception_mutex_);
  if (!exception_) exception_ = std::current_exception();
}

AVPixelFormat Decoder::choose_format(AVCodecContext* context, const AVPixelFormat* offered) {
  auto& self = *static_cast<Decoder*>(context->opaque);
  try {
    return self.nvdec_.choose_format(*context, offered);
  } catch (const std::exception&) {
    self.hold_exception();
  }
  return AV_PIX_FMT_NONE;
}

// Called on FFmpeg's decoding threads too.
int Decoder::get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  auto& self = *static_cast<Decoder*>(context->opaque);
  try {
    return get_direct_buffer(*context, *frame, flags, self.pool_);
  } catch (const std::exception&) {
    self.hold_exception();
    return AVERROR(ENOMEM);
  }
}

}  // namespace framelane
