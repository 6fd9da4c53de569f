#include "pipeline/decoder.hpp"

extern "C" {
#include <libavutil/imgutils.h>
}

#include <array>
#include <cstddef>
#include <utility>

#include "pipeline/failure.hpp"
#include "pipeline/log.hpp"
#include "pipeline/processors.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

/// Behind every plane: decoders and what reads their frames run up to this far over the end.
constexpr std::size_t kPlanePadding = 128;

/// A picture comes out at the latest this many packets after its own: decoders hold up to 16 back
/// to reorder them, of two fields each.
constexpr std::int64_t kReorder = 32;

std::int64_t duration_of(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
  return frame.duration;
#else
  return frame.pkt_duration;
#endif
}

void allow_threaded_callbacks([[maybe_unused]] AVCodecContext& context) {
#if LIBAVCODEC_VERSION_MAJOR < 60
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  context.thread_safe_callbacks = 1;  // later versions take it for granted
#pragma GCC diagnostic pop
#endif
}

// A number that travels from a packet to the frame that is made of it.
void number_packet([[maybe_unused]] AVCodecContext& context, [[maybe_unused]] AVPacket& packet,
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

// Where the codec's own standard puts chroma, for decoders that do not say: between the luma
// samples in JPEG (JFIF) and in the codecs of the H.261 family before MPEG-2. Elsewhere on the
// left.
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
  return FeedError(FeedFault::kMemory, "the decoder got no memory for a frame");
}

}  // namespace

Decoder::Decoder(const AVCodecParameters& parameters, AVRational time_base, AVRational frame_rate,
                 Dictionary& options, const InputOptions& input, bool live, FramePool& pool,
                 FeedStats& stats, Timeline& timeline, FrameImporter& importer)
    : pool_(pool), stats_(stats), timeline_(timeline), importer_(importer), frame_(make_frame()) {
  if (input.decoder == InputOptions::DecoderKind::kNvdec) {
    throw FeedError(FeedFault::kConfiguration,
                    "input.decoder is nvdec, which this build does not have; use auto");
  }
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr) {
    stats_.count(DecodeFault::kUnsupported);
    throw FeedError(FeedFault::kConfiguration,
                    std::string("FFmpeg has no decoder for the source's codec ") +
                        avcodec_get_name(parameters.codec_id) +
                        "; use video: copy, or set the camera to another codec");
  }
  context_.reset(avcodec_alloc_context3(codec));
  if (!context_ || avcodec_parameters_to_context(context_.get(), &parameters) < 0) {
    throw no_memory();
  }
  context_->pkt_timebase = time_base;
  context_->framerate = frame_rate;
  context_->thread_count = codec_threads(live);  // the option `threads` overrides
  context_->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
  // Crop exactly as the stream says: our views need no aligned start.
  context_->flags |= AV_CODEC_FLAG_UNALIGNED;
#if LIBAVCODEC_VERSION_MAJOR >= 60
  context_->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#endif
  // Damage is counted; what the decoder and its threads say about it is for those who look for it.
  context_->log_level_offset = AV_LOG_INFO - AV_LOG_ERROR;
  context_->opaque = this;
  context_->get_buffer2 = &Decoder::get_buffer;
  allow_threaded_callbacks(*context_);
  if (const int error = avcodec_open2(context_.get(), codec, options.ptr()); error < 0) {
    if (error == AVERROR(ENOMEM)) throw no_memory();
    stats_.count(DecodeFault::kUnsupported);
    throw FeedError(FeedFault::kConfiguration, std::string("the decoder ") + codec->name +
                                                   " refuses the stream (" + av_error_text(error) +
                                                   "); check the values of input.options");
  }
}

// Called on FFmpeg's decoding threads too.
int Decoder::get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  const bool direct = (context->codec->capabilities & AV_CODEC_CAP_DR1) != 0;
  if (!direct || !layout_of(static_cast<AVPixelFormat>(frame->format))) {
    return avcodec_default_get_buffer2(context, frame, flags);
  }
  auto& self = *static_cast<Decoder*>(context->opaque);
  int width = frame->width;
  int height = frame->height;
  std::array<int, AV_NUM_DATA_POINTERS> alignment{};
  avcodec_align_dimensions2(context, &width, &height, alignment.data());
  // Widen until every plane's rows are aligned, instead of each plane by itself: decoders rely on
  // the chroma rows being a fixed fraction of the luma rows.
  const auto format = static_cast<AVPixelFormat>(frame->format);
  bool aligned = false;
  while (!aligned) {
    if (const int error = av_image_fill_linesizes(frame->linesize, format, width); error < 0) {
      return error;
    }
    aligned = true;
    for (int plane = 0; plane < 4; ++plane) {
      aligned = aligned && frame->linesize[plane] % FramePool::kPitchAlignment == 0;
    }
    width += width & -width;
  }
  std::array<std::ptrdiff_t, 4> pitches{};
  for (int plane = 0; plane < 4; ++plane) pitches[plane] = frame->linesize[plane];
  std::array<std::size_t, 4> bytes{};
  if (const int error = av_image_fill_plane_sizes(bytes.data(), format, height, pitches.data());
      error < 0) {
    return error;
  }
  std::array<std::size_t, 4> offsets{};
  std::size_t total = 0;
  for (int plane = 0; plane < 4 && bytes[plane] > 0; ++plane) {
    offsets[plane] = total;
    total += (bytes[plane] + kPlanePadding + FramePool::kPitchAlignment - 1) /
             FramePool::kPitchAlignment * FramePool::kPitchAlignment;
  }
  try {
    frame->buf[0] = self.pool_.get(total).release();
  } catch (const std::exception&) {  // must not pass through C
    self.out_of_memory_ = true;
    return AVERROR(ENOMEM);
  }
  for (int plane = 0; plane < 4 && bytes[plane] > 0; ++plane) {
    frame->data[plane] = frame->buf[0]->data + offsets[plane];
  }
  frame->extended_data = frame->data;
  return 0;
}

void Decoder::send(AVPacket* packet) {
  if (packet != nullptr) expect_frame(*packet);
  if (packet != nullptr && (packet->flags & AV_PKT_FLAG_CORRUPT) != 0) {
    damaged(DecodeFault::kTruncated);
    ++damaged_packets_;
  }
  const Clock::time_point begin = Clock::now();
  int error = 0;
  {
    const BusyMeter::Scope busy(stats_.decode_busy);
    error = avcodec_send_packet(context_.get(), packet);
  }
  working_ += Clock::now() - begin;
  if (error < 0 && error != AVERROR_EOF) failed(error);
}

Decoder::Flow Decoder::receive(InputFrame& out) {
  for (;;) {
    const Clock::time_point begin = Clock::now();
    int result = 0;
    {
      const BusyMeter::Scope busy(stats_.decode_busy);
      result = avcodec_receive_frame(context_.get(), frame_.get());
    }
    const Clock::time_point now = Clock::now();
    working_ += now - begin;
    if (result == AVERROR(EAGAIN)) return Flow::kNeedInput;
    if (result == AVERROR_EOF) {
      settle(sent_);
      return Flow::kEndOfStream;
    }
    if (result < 0) {
      failed(result);
      continue;
    }
    count_damage();
    match_frame();
    if (frame_->chroma_location == AVCHROMA_LOC_UNSPECIFIED) {
      frame_->chroma_location = standard_location(context_->codec_id);
    }
    out = importer_.import(*frame_);
    out.duration = duration_of(*frame_);
    out.pts = timeline_.stamp_frame(frame_->best_effort_timestamp, out.duration);
    out.decoded_at = Clock::now();
    stats_.observe(StageStep::kDecode, working_);
    working_ = {};
    av_frame_unref(frame_.get());
    return Flow::kReady;
  }
}

void Decoder::reset() {
  avcodec_flush_buffers(context_.get());
  working_ = {};
  damaged_packets_ = 0;
  settled_ = sent_;
  lone_ = false;
  accounted_ = 0;
}

void Decoder::expect_frame(AVPacket& packet) {
  const auto capacity = static_cast<std::int64_t>(became_frame_.size());
  if (sent_ - settled_ == capacity) settle(settled_ + 1);
  number_packet(*context_, packet, ++sent_);
  // Frames that an edit list or the option skip_frame leaves out are not missing, and truncated
  // packets are counted by themselves.
  constexpr int kExplained = AV_PKT_FLAG_DISCARD | AV_PKT_FLAG_CORRUPT;
  became_frame_[sent_ % capacity] =
      (packet.flags & kExplained) != 0 || context_->skip_frame > AVDISCARD_DEFAULT;
}

void Decoder::match_frame() {
  std::int64_t packet = number_of(*frame_);
  // Decoders that do not pass the number on have no delay.
  if (packet < 1 || packet > sent_) packet = sent_;
  bool& became = became_frame_[packet % became_frame_.size()];
  if (packet <= settled_ || became) {
    // One picture shown again, at the word of a packet that has none of its own.
    ++accounted_;
    accounted_until_ = sent_;
    return;
  }
  became = true;
  settle(packet - kReorder);
}

// No more frames come of the packets up to this one.
void Decoder::settle(std::int64_t packet) {
  while (settled_ < packet) {
    ++settled_;
    if (settled_ > accounted_until_) accounted_ = 0;
    if (became_frame_[settled_ % became_frame_.size()]) {
      lone_ = true;
      continue;
    }
    if (accounted_ > 0) {
      --accounted_;
    } else if (!lone_) {
      damaged(DecodeFault::kCorrupt);
    }
    lone_ = false;
  }
}

void Decoder::failed(int error) {
  if (error == AVERROR(ENOMEM) || out_of_memory_) throw no_memory();
  ++accounted_;
  accounted_until_ = sent_;
  damaged(error == AVERROR_PATCHWELCOME || error == AVERROR(ENOSYS) ? DecodeFault::kUnsupported
                                                                    : DecodeFault::kCorrupt);
}

void Decoder::damaged(DecodeFault fault) {
  stats_.count(fault);
  if (std::exchange(damage_told_, true)) return;
  log::info(
      "feed {}: not every packet can be decoded; decode_errors counts those that cannot, and "
      "at log level debug {} says why",
      stats_.feed(), name());
}

// A frame made from a truncated packet is marked corrupt as well; that packet has been counted.
void Decoder::count_damage() {
  if (frame_->decode_error_flags == 0 && (frame_->flags & AV_FRAME_FLAG_CORRUPT) == 0) return;
  if (damaged_packets_ > 0) {
    --damaged_packets_;
    return;
  }
  damaged(DecodeFault::kCorrupt);
}

}  // namespace framelane
