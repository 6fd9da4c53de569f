#include "pipeline/source/decoder.hpp"

#include <new>
#include <optional>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

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

/// NVDEC has shown a frame long before so many packets, or there is none in them.
constexpr std::size_t kMaxKept = 64;
/// Calls of NVDEC's that fail in a row before it is given up.
constexpr int kMaxGpuFailures = 3;

}  // namespace

/// Software decodes from here on: fails the feed if it must not, else says why, if there is a
/// reason.
void Decoder::leave_gpu(FeedFault fault, const std::string& why) {
  gpu_ = {};
  if (must_use_gpu_) {
    throw FeedError(fault, "input.decoder is nvdec, but " +
                               (why.empty() ? "the feed runs on the CPU" : why) +
                               "; use auto to have it decoded in software then");
  }
  if (stats_.set_decoder_reason(why) && !why.empty()) {
    log::warn("feed {}: decoding in software, because {}", stats_.feed(), why);
  }
}

void Decoder::go_on_in_software(FeedFault fault, const std::string& why) {
  leave_gpu(fault, why);
  refusal_.clear();
  emptying_ = false;
  Dictionary options = options_.copy();
  open_in_software(options);
  again_ = std::exchange(kept_, {});
  // No frame comes any more of what NVDEC alone has got, nor one that the next packet is half of.
  if (proven_) settle(again_.empty() ? sent_ : again_.front().number - 1);
  lone_ = false;
  stats_.set_decoder(name());
}

void Decoder::send(AVPacket* packet) {
  if (packet != nullptr) expect_frame(*packet);
  if (packet != nullptr && (packet->flags & AV_PKT_FLAG_CORRUPT) != 0) {
    damaged(DecodeFault::kTruncated);
    ++damaged_packets_;
  }
  if (gpu_) {
    keep(packet);
    if (!stage_->takes_device_frames()) {
      return go_on_in_software(FeedFault::kDevice, "the feed has left the GPU");
    }
  }
  const int error = decode(packet);
  if (error < 0 && error != AVERROR_EOF && refusal_.empty()) failed(error);
}

int Decoder::decode(AVPacket* packet) {
  // What is wrong with NVDEC it says before the first frame, as an error.
  std::optional<AvLogCapture> log;
  if (gpu_ && !proven_) log.emplace();
  const Clock::time_point begin = Clock::now();
  const BusyMeter::Scope busy(stats_.decode_busy);
  const int error = avcodec_send_packet(context_.get(), packet);
  working_ += Clock::now() - begin;
  return error;
}

int Decoder::take_frame() {
  std::optional<AvLogCapture> log;
  if (gpu_ && !proven_) log.emplace();
  const Clock::time_point begin = Clock::now();
  const BusyMeter::Scope busy(stats_.decode_busy);
  const int result = avcodec_receive_frame(context_.get(), frame_.get());
  working_ += Clock::now() - begin;
  return result;
}

Decoder::Flow Decoder::receive(InputFrame& out) {
  for (;;) {
    const int result = take_frame();
    if (follow_refusal(result)) continue;
    if (result == AVERROR(EAGAIN)) {
      if (decode_again()) continue;
      return Flow::kNeedInput;
    }
    if (result == AVERROR_EOF) {
      settle(sent_);
      return Flow::kEndOfStream;
    }
    if (result < 0) {
      failed(result);
      continue;
    }
    if (gpu_) came_from_gpu();
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

void Decoder::keep(const AVPacket* packet) {
  if (proven_ || kept_.size() == kMaxKept) kept_.clear();
  Kept kept{nullptr, sent_};
  if (packet != nullptr) {
    kept.packet = make_packet();
    if (av_packet_ref(kept.packet.get(), packet) < 0) throw std::bad_alloc();
  }
  kept_.push_back(std::move(kept));
}

/// A frame has come; the packets before it will not be decoded again. (The one that NVDEC has
/// refused is behind all frames that it still has.)
void Decoder::came_from_gpu() {
  const std::ptrdiff_t refused = emptying_ && !kept_.empty() ? 1 : 0;
  kept_.erase(kept_.begin(), kept_.end() - refused);
  if (frame_->format != AV_PIX_FMT_CUDA) {
    leave_gpu(FeedFault::kConfiguration,
              std::string("FFmpeg decodes ") + context_->codec->name + " without asking for it");
    stats_.set_decoder(name());
    quieten();
    return;
  }
  gpu_failures_ = 0;
  if (std::exchange(proven_, true)) return;
  stats_.set_decoder_reason("");
  stats_.set_decoder(name());
  quieten();
}

/// NVDEC has refused the packet that was sent last: what it decoded before, of another format,
/// comes out, and then software gets that packet. True when receive() has to begin again.
bool Decoder::follow_refusal(int result) {
  if (refusal_.empty() || result >= 0) return false;
  if (!std::exchange(emptying_, true)) {
    decode(nullptr);
  } else {
    go_on_in_software(FeedFault::kConfiguration, refusal_);
  }
  return true;
}

/// Gives software the next of the packets that NVDEC has not made frames of; false: none is left.
bool Decoder::decode_again() {
  if (again_.empty()) return false;
  const Kept next = std::move(again_.front());
  again_.pop_front();
  if (next.packet) number_packet(*context_, *next.packet, next.number);
  const int error = decode(next.packet.get());
  if (error < 0 && error != AVERROR_EOF) failed(error);
  return true;
}

/// Whether an error was the GPU's, and software goes on.
bool Decoder::gpu_failed(int error) {
  // FFmpeg's word for a CUDA call that fails, and for no surface that is free.
  if (!gpu_ || (error != AVERROR_EXTERNAL && error != AVERROR(ENOMEM))) return false;
  // Some of NVDEC's errors are of the stream.
  if (proven_ && ++gpu_failures_ < kMaxGpuFailures && error == AVERROR_EXTERNAL &&
      stage_->takes_device_frames()) {
    return false;
  }
  go_on_in_software(FeedFault::kDevice, "NVDEC fails: " + av_error_text(error));
  return true;
}

void Decoder::reset() {
  avcodec_flush_buffers(context_.get());
  kept_.clear();
  again_.clear();
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
  {
    const std::lock_guard lock(exception_mutex_);
    if (exception_) std::rethrow_exception(exception_);
  }
  if (gpu_failed(error)) return;
  if (error == AVERROR(ENOMEM)) throw no_memory();
  // Software would fail at it in the same way.
  if (!kept_.empty() && !proven_) kept_.pop_back();
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
