#include "pipeline/encode/encode_plan.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <libavutil/opt.h>
}

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pipeline/av/allocation_limit.hpp"
#include "pipeline/av/av_color.hpp"
#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/av_option.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/processors.hpp"
#include "pipeline/encode/codec_options.hpp"
#include "pipeline/encode/target_choice.hpp"
#include "pipeline/stage/lost_gpus.hpp"

namespace framelane {
namespace {

/// Leaves the keyframes to Encode, which asks for them (KeyframeTimes). An encoder that cannot be
/// asked counts frames.
void set_gop(AVCodecContext& context, const AVCodec& codec, std::chrono::microseconds gop) {
  if (!takes_keyframe_requests(codec)) {
    const double frames = std::chrono::duration<double>(gop).count() * av_q2d(context.framerate);
    context.gop_size = std::max(1, static_cast<int>(std::lround(frames)));
    return;
  }
  // The most that FFmpeg's MPEG encoders allow, and the most that a field of QSV's can hold.
  context.gop_size = counts_in_frames(codec.id) ? 600 : UINT16_MAX;
  // No keyframes at scene cuts, because two encodes may see them at different frames.
  context.keyint_min = context.gop_size;
  if (counts_in_frames(codec.id)) {
    av_opt_set_int(&context, "sc_threshold", 1'000'000'000, AV_OPT_SEARCH_CHILDREN);
  }
  // Without this NVENC, QSV and x265 make a frame at which decoding cannot start.
  for (const char* option : {"forced-idr", "forced_idr"}) {
    av_opt_set(&context, option, "1", AV_OPT_SEARCH_CHILDREN);
  }
}

/// libx265 writes to standard error past FFmpeg's log, unless its own log level forbids it.
void silence_x265(AVCodecContext& context) {
  AVDictionary* parameters = nullptr;
  if (av_opt_get_dict_val(context.priv_data, "x265-params", 0, &parameters) < 0) return;
  av_dict_set(&parameters, "log-level", "error", AV_DICT_DONT_OVERWRITE);
  av_opt_set_dict_val(context.priv_data, "x265-params", parameters, 0);
  av_dict_free(&parameters);
}

/// `frames`: make_gpu_frames, with `format`; or null.
CodecContextPtr make_context(const AVCodec& codec, const CodecCandidate& candidate,
                             const EncodeOptions& options, const FrameFormat& target,
                             AVPixelFormat format, const BufferRef& frames, int threads) {
  CodecContextPtr context(avcodec_alloc_context3(&codec));
  if (!context) throw std::bad_alloc();
  context->width = target.width;
  context->height = target.height;
  context->pix_fmt = frames ? AV_PIX_FMT_CUDA : format;
  if (frames) context->hw_frames_ctx = BufferRef(frames).release();
  context->time_base = target.time_base;
  // Without a rate, encoders take 1/time_base for it and choose absurd levels.
  context->framerate = target.frame_rate.num > 0 ? target.frame_rate : AVRational{25, 1};
  context->sample_aspect_ratio = target.sample_aspect_ratio;
  context->thread_count = threads;  // the options are applied below and may say otherwise
  const AvColorTags tags = tags_of(target.color);
  context->colorspace = tags.space;
  context->color_range = tags.range;
  context->color_primaries = tags.primaries;
  context->color_trc = tags.transfer;
  const PixelFormatInfo& shape = info(target.layout);
  if (shape.chroma_half_width) context->chroma_sample_location = tags.location;
  if (options.bitrate) context->bit_rate = *options.bitrate;
  if (options.gop) set_gop(*context, codec, *options.gop);
  // Also for containers that have the headers in band: Muxer puts them there, and any output may
  // come later.
  context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (const auto refusal = apply_options(*context, candidate)) {
    throw FeedError(FeedFault::kConfiguration, "encode " + options.name + ": " + *refusal);
  }
  if (candidate.name == "libx265") silence_x265(*context);
  return context;
}

MediaFormatRef media_of(const AVCodecContext& context, const FrameFormat& target,
                        const EncodeRequest& request) {
  auto media = std::make_shared<MediaFormat>();
  media->video.parameters.reset(avcodec_parameters_alloc());
  if (!media->video.parameters ||
      avcodec_parameters_from_context(media->video.parameters.get(), &context) < 0) {
    throw std::bad_alloc();
  }
  if (context.hw_frames_ctx != nullptr) {  // where the frames were is nothing that a file shows
    media->video.parameters->format =
        reinterpret_cast<const AVHWFramesContext*>(context.hw_frames_ctx->data)->sw_format;
  }
  media->video.time_base = context.time_base;
  media->video.frame_rate = target.frame_rate;
  if (const StreamFormat* audio = request.audio) {
    media->audio = StreamFormat{copy_parameters(*audio->parameters), audio->time_base, {0, 1}};
  }
  media->lost_until = request.lost_until;
  return media;
}

/// Why an encoder has not opened.
struct Refusal {
  int error = 0;  ///< FFmpeg's code
  std::string why;
  bool no_session = false;  ///< NvencSession::refused
  /// True if threads, memory or sessions are short: it may open later.
  bool shortage() const { return no_session || is_shortage(error); }
};

/// Opens an encoder and counts its session. Null if it does not open; `refusal` then says why.
EncoderPtr open_encoder(const AVCodec& codec, const CodecCandidate& candidate,
                        CodecContextPtr context, Refusal& refusal) {
  const AvLogCapture log;
  allow_av_encoder(codec.id, std::int64_t{context->width} * context->height);
  const int error = avcodec_open2(context.get(), &codec, nullptr);
  if (error >= 0) {
    NvencSession session(gpu_of(candidate));
    return {context.release(), CloseEncoder{std::move(session)}};
  }
  const std::string first = AvLogCapture::first();
  refusal = {error, log.reason(av_error_text(error)), NvencSession::refused(first)};
  if (refusal.no_session) {
    const std::string gpu = gpu_of(candidate);
    NvencSession::note_refusal(gpu);
    refusal.why = "the driver allows no further session on " + gpu + ", where framelane has " +
                  std::to_string(NvencSession::count(gpu)) + " (" + first + ")";
  } else if (refusal.shortage()) {
    refusal.why = shortage_text(refusal.why);
  }
  return {};
}

/// Why the hardware that an encoder needs cannot be used; nothing if it can. Opens the encoder with
/// no options to find out, so that a rejected option is not taken for missing hardware. Its session
/// counts while it is open.
std::optional<Refusal> why_no_hardware(const AVCodec& codec, const CodecCandidate& candidate,
                                       const EncodeOptions& options, const EncodeTarget& target,
                                       const BufferRef& frames) {
  CodecCandidate plain{codec.name};
  // The option that chooses the GPU stays: whether that GPU can be used is the question.
  std::ranges::copy_if(candidate.options, std::back_inserter(plain.options),
                       [&](const AvOption& option) { return chooses_gpu(candidate, option); });
  Refusal refusal;
  const EncoderPtr encoder = open_encoder(
      codec, plain, make_context(codec, plain, options, target.format, target.av, frames, 0),
      refusal);
  return encoder ? std::nullopt : std::optional(refusal);
}

/// `opened_before`: the encoder has opened with the same options before, so that the failure is not
/// the configuration's.
[[noreturn]] void throw_open_failure(const EncodeOptions& options, const CodecCandidate& candidate,
                                     const FrameFormat& target, bool opened_before,
                                     const Refusal& refusal) {
  const int error = refusal.error;
  const bool shortage = refusal.shortage();
  const bool rejected = !opened_before && !shortage &&
                        (error == AVERROR(EINVAL) || error == AVERROR_OPTION_NOT_FOUND ||
                         error == AVERROR_PATCHWELCOME || error == AVERROR(ENOSYS));
  const FeedFault fault = shortage   ? FeedFault::kMemory
                          : rejected ? FeedFault::kConfiguration
                                     : FeedFault::kEncoder;
  const PictureSize size{target.width, target.height};
  const PictureSize whole = with_whole_chroma(size, target.layout);
  std::string advice = rejected ? "; check its options and the size" : "";
  if (!shortage && size != whole) {
    advice += fmt::format(
        "; if it wants even numbers, set convert.size to {}x{}, or to {}x-2, which keeps the shape "
        "(transcode: --size)",
        whole.width, whole.height, size.width + size.width % 2);
  }
  throw FeedError(fault, "encode " + options.name + ": " + candidate.name + " does not open " +
                             (opened_before ? "again " : "") + "for " +
                             fmt::format("{}x{} ", size.width, size.height) +
                             std::string(info(target.layout).name) + ": " + refusal.why + advice);
}

}  // namespace

// libx264 copies each frame into its own before it looks ahead.
bool may_hold_frames(const CodecCandidate& candidate) { return candidate.name != "libx264"; }

namespace {

void log_host_frames(const CodecCandidate& candidate, const EncodeRequest& request,
                     const std::string& why) {
  log::info("feed {}: encode {}: {} gets its frames from host memory: {}", request.feed,
            request.options.name, candidate.name, why);
}

/// Frames on the feed's GPU, if the encoder runs there and takes them.
BufferRef gpu_frames_for(const AVCodec& codec, const CodecCandidate& candidate,
                         const EncodeRequest& request, const EncodeTarget& target) {
  if (!is_nvenc(candidate) || !request.gpu_context) return {};
  if (gpu_of(candidate) != request.device) return {};
  std::string why;
  BufferRef frames = make_gpu_frames(codec, request.gpu_context, target.av, target.format.width,
                                     target.format.height, why);
  if (!frames) log_host_frames(candidate, request, why);
  return frames;
}

}  // namespace

std::shared_ptr<EncodePlan> make_encode_plan(const EncodeRequest& request) {
  std::string tried;
  bool lacked_session = false;
  FeedFault fault = FeedFault::kConfiguration;
  const auto pass_over = [&tried](const CodecCandidate& candidate, const std::string& why) {
    tried += (tried.empty() ? "" : "; ") + candidate.name + ' ' + why;
  };
  for (const CodecCandidate& configured : request.options.codecs) {
    CodecCandidate candidate = choose_gpu(configured, request.device);
    if (request.live) release_at_once(candidate);
    const AVCodec* codec = avcodec_find_encoder_by_name(candidate.name.c_str());
    if (codec == nullptr || codec->type != AVMEDIA_TYPE_VIDEO) {
      pass_over(candidate, codec == nullptr ? "is not in this FFmpeg" : "is no video encoder");
      continue;
    }
    if (takes_only_surfaces(*codec)) {
      pass_over(candidate, "takes frames in a device's memory alone, which framelane has not");
      continue;
    }
    if (request.rendition && !takes_keyframe_requests(*codec)) {
      pass_over(candidate, std::string(kNoRendition));
      continue;
    }
    if (is_nvenc(candidate) && is_lost_gpu(gpu_of(candidate))) {
      pass_over(candidate, "is on a GPU that is lost (" + gpu_of(candidate) + ")");
      fault = FeedFault::kDevice;
      continue;
    }
    if (request.opening) request.opening(candidate);
    EncodeTarget target = choose_target(*codec, request.options, request.source);
    if (counts_in_frames(codec->id) && target.format.frame_rate.num > 0) {
      target.format.time_base = av_inv_q(target.format.frame_rate);
    }
    // Hardware first: an option that is rejected is an error only if the encoder is available.
    BufferRef frames = gpu_frames_for(*codec, candidate, request, target);
    if (needs_hardware(*codec)) {
      std::optional<Refusal> no_hardware =
          why_no_hardware(*codec, candidate, request.options, target, frames);
      if (no_hardware && frames && !no_hardware->no_session) {
        frames = {};  // perhaps the encoder only refuses frames on the GPU
        const std::string why = no_hardware->why;
        no_hardware = why_no_hardware(*codec, candidate, request.options, target, frames);
        if (!no_hardware) log_host_frames(candidate, request, why);
      }
      if (no_hardware && is_nvenc(candidate) && is_lost_gpu(gpu_of(candidate))) {
        fault = FeedFault::kDevice;  // it was lost meanwhile
      }
      if (no_hardware) {
        pass_over(candidate, "does not open here: " + no_hardware->why);
        if (no_hardware->shortage()) fault = FeedFault::kMemory;
        lacked_session = lacked_session || no_hardware->no_session;
        continue;
      }
    }
    const int threads = codec_threads(request.live);
    Refusal refusal;
    EncoderPtr encoder = open_encoder(
        *codec, candidate,
        make_context(*codec, candidate, request.options, target.format, target.av, frames, threads),
        refusal);
    if (!encoder) {
      if (!refusal.no_session) {
        throw_open_failure(request.options, candidate, target.format, false, refusal);
      }
      // Another encoder has been quicker.
      pass_over(candidate, "does not open here: " + refusal.why);
      fault = FeedFault::kMemory;
      lacked_session = true;
      continue;
    }
    if (!tried.empty()) {
      log::warn("feed {}: encode {}: using {}, because {}", request.feed, request.options.name,
                candidate.name, tried);
    }
    auto plan = std::make_shared<EncodePlan>();
    plan->options = request.options;
    plan->codec = candidate;
    plan->source_time_base = request.source.time_base;
    plan->target = target.format;
    plan->scaling = target.scaling;
    plan->target.memory = frames ? FrameMemory::kDevice : FrameMemory::kHost;
    plan->frames = frames;
    plan->threads = threads;
    plan->live = request.live;
    plan->media = media_of(*encoder, target.format, request);
    plan->gpu = gpu_of(candidate);
    plan->on_feeds_gpu = !plan->gpu.empty() && plan->gpu == request.device;
    plan->lacked_session = lacked_session;
    plan->opened = std::move(encoder);
    return plan;
  }
  const bool passing = fault != FeedFault::kConfiguration;
  throw FeedError(fault, "encode " + request.options.name + ": no encoder is available: " + tried +
                             (passing ? "" : "; framelane devices lists those that open"));
}

EncoderPtr reopen_encoder(const EncodePlan& plan) {
  const AVCodec* codec = avcodec_find_encoder_by_name(plan.codec.name.c_str());
  Refusal refusal;
  EncoderPtr encoder =
      open_encoder(*codec, plan.codec,
                   make_context(*codec, plan.codec, plan.options, plan.target,
                                encoder_format(*codec, plan.target.layout, plan.target.color.range),
                                plan.frames, plan.threads),
                   refusal);
  if (!encoder && !refusal.no_session) {
    throw_open_failure(plan.options, plan.codec, plan.target, true, refusal);
  }
  return encoder;
}

bool has_left_gpu(const EncodePlan& plan, Stage& stage) {
  if (plan.gpu.empty()) return false;
  return is_lost_gpu(plan.gpu) || (plan.frames && !stage.takes_device_frames());
}

}  // namespace framelane
