#include "pipeline/source/nvdec_trial.hpp"

extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <new>
#include <utility>

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// NVDEC's own limit.
constexpr int kMaxSurfaces = 32;
/// Frames that the feed holds besides those in its ring: one that waits for its place, and the next
/// one, inside FFmpeg.
constexpr int kInHand = 2;
/// Surfaces that FFmpeg adds by itself to what the codec needs and to what it is asked for.
constexpr int kAddedByFfmpeg = 3;
/// Packets that are held at most. NVDEC gives a frame long before, if there is one in them.
constexpr std::size_t kMaxHeld = 64;
/// Calls of NVDEC that fail in a row before software takes over.
constexpr int kMaxFailures = 3;

/// "h264 1920x1080 yuv420p"
std::string describe(const AVCodecContext& context) {
  const char* pixels = av_get_pix_fmt_name(context.sw_pix_fmt);
  return std::string(context.codec->name) + ' ' + std::to_string(context.width) + 'x' +
         std::to_string(context.height) + (pixels != nullptr ? std::string(" ") + pixels : "");
}

}  // namespace

const AVCodec* nvdec_of(AVCodecID id) {
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (codec->id != id || av_codec_is_decoder(codec) == 0 || codec->wrapper_name != nullptr) {
      continue;
    }
    for (int i = 0; const AVCodecHWConfig* config = avcodec_get_hw_config(codec, i); ++i) {
      if (config->pix_fmt == AV_PIX_FMT_CUDA &&
          (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0) {
        return codec;
      }
    }
  }
  return nullptr;
}

std::string nvdec_name(const AVCodec& codec) { return std::string(codec.name) + "_nvdec"; }

NvdecTrial::NvdecTrial(InputOptions::DecoderKind decoder, Stage* stage, int ring, FeedStats& stats)
    : decoder_(decoder), stage_(stage), ring_(ring), stats_(stats) {}

const AVCodec* NvdecTrial::begin(AVCodecID id) {
  if (decoder_ == InputOptions::DecoderKind::kSoftware) {
    stats_.set_decoder_reason("");
    return nullptr;
  }
  std::string why;
  if (stage_ != nullptr) device_ = stage_->decode_context(why);
  if (device_) {
    if (const AVCodec* codec = nvdec_of(id)) return codec;
    why = std::string("FFmpeg has no NVDEC decoder for ") + avcodec_get_name(id);
  }
  leave(FeedFault::kConfiguration, why);
  return nullptr;
}

AVPixelFormat NvdecTrial::choose_format(AVCodecContext& context, const AVPixelFormat* offered) {
  while (*offered != AV_PIX_FMT_NONE && *offered != AV_PIX_FMT_CUDA) ++offered;
  if (*offered == AV_PIX_FMT_CUDA) {
    refusal_ = prepare_surfaces(context);
    if (refusal_.empty()) return AV_PIX_FMT_CUDA;
  } else {
    // Either FFmpeg never offers it for such a stream, or it has tried NVDEC and failed.
    const std::string reason = AvLogCapture::first();
    refusal_ = "NVDEC does not take " + describe(context) + (reason.empty() ? "" : ": ") + reason;
  }
  // A software format would do as well, but FFmpeg would then decode on one thread.
  return AV_PIX_FMT_NONE;
}

/// NVDEC decodes into a fixed number of surfaces, and frames are those surfaces, not copies. There
/// must be one for every picture that the codec refers to and one for every frame that the feed
/// holds. Asks FFmpeg for that many; returns why there cannot be so many.
std::string NvdecTrial::prepare_surfaces(AVCodecContext& context) const {
  const AVPixFmtDescriptor* pixels = av_pix_fmt_desc_get(context.sw_pix_fmt);
  const bool plain = pixels != nullptr && pixels->comp[0].depth == 8 &&
                     pixels->log2_chroma_w == 1 && pixels->log2_chroma_h == 1;
  if (!plain) {
    return "framelane takes 8-bit 4:2:0 from NVDEC, and the source is " + describe(context);
  }
  context.extra_hw_frames = 0;
  AVBufferRef* reference = nullptr;
  const int error =
      avcodec_get_hw_frames_parameters(&context, device_.get(), AV_PIX_FMT_CUDA, &reference);
  if (error < 0) return "NVDEC does not take " + describe(context) + ": " + av_error_text(error);
  const BufferRef frames = BufferRef::adopt(reference);
  const int needed =
      reinterpret_cast<const AVHWFramesContext*>(reference->data)->initial_pool_size + ring_ +
      kInHand;
  if (needed > kMaxSurfaces) {
    return "NVDEC has " + std::to_string(kMaxSurfaces) + " surfaces, and " +
           std::to_string(needed) + " are needed for " + describe(context) + " and a ring of " +
           std::to_string(ring_) + "; use a smaller ring";
  }
  context.extra_hw_frames = std::max(ring_ + kInHand - kAddedByFfmpeg, 0);
  return {};
}

bool NvdecTrial::begin_emptying() { return !std::exchange(emptying_, true); }

void NvdecTrial::remember_for_replay(const AVPacket* packet, std::int64_t number) {
  if (proven_ || held_.size() == kMaxHeld) held_.clear();
  ReplayPacket replay{nullptr, number};
  if (packet != nullptr) {
    replay.packet = make_packet();
    if (av_packet_ref(replay.packet.get(), packet) < 0) throw std::bad_alloc();
  }
  held_.push_back(std::move(replay));
}

void NvdecTrial::forget_damaged() {
  if (!held_.empty() && !proven_) held_.pop_back();
}

bool NvdecTrial::frame_came(const AVFrame& frame, const AVCodec& codec) {
  // The frame's packet and those before it need not be decoded again. A packet that NVDEC refused
  // is later than all frames that are still inside.
  const std::ptrdiff_t refused = emptying_ && !held_.empty() ? 1 : 0;
  held_.erase(held_.begin(), held_.end() - refused);
  if (frame.format != AV_PIX_FMT_CUDA) {
    leave(FeedFault::kConfiguration,
          std::string("FFmpeg decodes ") + codec.name + " without asking for it");
    return true;
  }
  failures_ = 0;
  if (std::exchange(proven_, true)) return false;
  stats_.set_decoder_reason("");
  return true;
}

bool NvdecTrial::must_end(int error) {
  // What FFmpeg returns for a CUDA call that fails, and when no surface is free.
  if (!device_ || (error != AVERROR_EXTERNAL && error != AVERROR(ENOMEM))) return false;
  // A few failed calls may be the stream's fault, once NVDEC has decoded some of it.
  const bool bearable = proven_ && ++failures_ < kMaxFailures && error == AVERROR_EXTERNAL &&
                        stage_->takes_device_frames();
  return !bearable;
}

void NvdecTrial::leave(FeedFault fault, const std::string& why) {
  device_ = {};
  if (decoder_ == InputOptions::DecoderKind::kNvdec) {
    throw FeedError(fault, "input.decoder is nvdec, but " +
                               (why.empty() ? "the feed runs on the CPU" : why) +
                               "; use auto to have it decoded in software then");
  }
  if (stats_.set_decoder_reason(why) && !why.empty()) {
    log::warn("feed {}: decoding in software, because {}", stats_.feed(), why);
  }
}

std::optional<std::int64_t> NvdecTrial::begin_replay() {
  refusal_.clear();
  emptying_ = false;
  replay_ = std::exchange(held_, {});
  if (replay_.empty()) return std::nullopt;
  return replay_.front().number;
}

std::optional<NvdecTrial::ReplayPacket> NvdecTrial::next_replay() {
  if (replay_.empty()) return std::nullopt;
  ReplayPacket next = std::move(replay_.front());
  replay_.pop_front();
  return next;
}

void NvdecTrial::forget_packets() {
  held_.clear();
  replay_.clear();
}

}  // namespace framelane
