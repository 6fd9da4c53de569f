#include "pipeline/encode/encoder.hpp"

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "pipeline/av/av_color.hpp"
#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/processors.hpp"

namespace framelane {
namespace {

std::string format_name(AVPixelFormat format) {
  const char* name = av_get_pix_fmt_name(format);
  return name != nullptr ? name : "unknown";
}

/// The formats an encoder takes; empty when it takes any.
std::span<const AVPixelFormat> formats_of(const AVCodec& codec) {
  const AVPixelFormat* formats = nullptr;
  int count = 0;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
  const void* list = nullptr;
  avcodec_get_supported_config(nullptr, &codec, AV_CODEC_CONFIG_PIX_FORMAT, 0, &list, &count);
  formats = static_cast<const AVPixelFormat*>(list);
#else
  formats = codec.pix_fmts;
  while (formats != nullptr && formats[count] != AV_PIX_FMT_NONE) ++count;
#endif
  return formats != nullptr ? std::span(formats, static_cast<std::size_t>(count))
                            : std::span<const AVPixelFormat>();
}

/// The name under which `codec` takes that layout and range (its own or the J one), or NONE.
AVPixelFormat encoder_format(const AVCodec& codec, PixelFormat layout, Range range) {
  const AVPixelFormat plain = av_format(layout);
  const std::span<const AVPixelFormat> taken = formats_of(codec);
  if (taken.empty()) return plain;
  const bool takes_plain = std::ranges::find(taken, plain) != taken.end();
  if (takes_plain && plain != AV_PIX_FMT_NONE) return plain;
  if (range == Range::kFull) {
    for (AVPixelFormat format : taken) {
      if (is_full_range_format(format) && layout_of(format) == layout) return format;
    }
  }
  return AV_PIX_FMT_NONE;
}

/// What players take a codec's pictures for because its stream cannot say otherwise, and what it is
/// therefore given unless the configuration insists.
struct ImpliedColor {
  std::optional<Matrix> matrix{};
  std::optional<Range> range{};
  std::optional<Siting> siting{};
};

ImpliedColor implied_color(AVCodecID codec, int height) {
  const ColorSpec untagged = resolve_color(AV_PIX_FMT_YUV420P, height, {}, {});
  switch (codec) {
    case AV_CODEC_ID_MJPEG:
    case AV_CODEC_ID_LJPEG:  // JFIF (ITU-T T.871), 7
      return {Matrix::kBt601, Range::kFull, Siting::kCenter};
    case AV_CODEC_ID_MPEG1VIDEO:
      return {untagged.matrix, Range::kLimited, Siting::kCenter};
    case AV_CODEC_ID_MPEG2VIDEO:  // its sequence_display_extension names the matrix
      return {.range = Range::kLimited};
    case AV_CODEC_ID_VP8:  // RFC 6386, 9.2
      return {Matrix::kBt601, Range::kLimited};
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_H263:
    case AV_CODEC_ID_H263P:
    case AV_CODEC_ID_MSMPEG4V2:
    case AV_CODEC_ID_MSMPEG4V3:
    case AV_CODEC_ID_WMV1:
    case AV_CODEC_ID_WMV2:
    case AV_CODEC_ID_FLV1:
      return {untagged.matrix, Range::kLimited};
    default:
      return {};
  }
}

/// Formats to offer an encoder that does not take the source's own, best first: as much of the
/// chroma as the source has, never more. RGB goes to 4:2:0, which every player plays.
std::span<const PixelFormat> fallbacks(PixelFormat source) {
  using enum PixelFormat;
  static constexpr std::array kFromRgb{kNv12, kI420, kI422, kI444};
  static constexpr std::array kFrom420{kI420, kNv12};
  static constexpr std::array kFrom422{kI422, kI420, kNv12};
  static constexpr std::array kFrom444{kI444, kI422, kI420, kNv12};
  const PixelFormatInfo& shape = info(source);
  if (shape.rgb) return kFromRgb;
  if (shape.gray || shape.chroma_half_height) return kFrom420;
  if (shape.chroma_half_width) return kFrom422;
  return kFrom444;
}

struct Target {
  FrameFormat format;
  AVPixelFormat av = AV_PIX_FMT_NONE;
};

ColorSpec target_color(const AVCodec& codec, const FrameFormat& source, PixelFormat layout,
                       const ColorOverride& wanted) {
  ColorSpec color = source.color;
  const PixelFormatInfo& from = info(source.layout);
  if (!info(layout).rgb) {
    if (from.rgb) {
      // Untagged primaries and transfer stay unspecified: RGB says nothing of them.
      color.matrix = Matrix::kBt709;
      color.range = Range::kLimited;
      color.siting = Siting::kLeft;
    }
    const ImpliedColor implied = implied_color(codec.id, source.height);
    color.matrix = implied.matrix.value_or(color.matrix);
    color.range = implied.range.value_or(color.range);
    // Chroma that is subsampled already cannot move.
    const bool places_chroma = !from.chroma_half_width && !from.chroma_half_height;
    if (places_chroma) color.siting = implied.siting.value_or(color.siting);
  }
  color.matrix = wanted.matrix.value_or(color.matrix);
  color.range = wanted.range.value_or(color.range);
  color.siting = wanted.siting.value_or(color.siting);
  return color;
}

/// What the encoder is to be given: the configured format, else the source's own, else the nearest.
Target choose_target(const AVCodec& codec, const EncodeOptions& options,
                     const FrameFormat& source) {
  const bool always_limited =
      codec.id == AV_CODEC_ID_MPEG1VIDEO || codec.id == AV_CODEC_ID_MPEG2VIDEO;
  if (always_limited && options.color.range == Range::kFull) {
    throw FeedError(FeedFault::kConfiguration,
                    "encode " + options.name + ": " + codec.name +
                        " has no full range, and players would take it for limited; remove "
                        "convert.range");
  }
  std::vector<PixelFormat> layouts;
  if (options.format) {
    layouts.push_back(*options.format);
  } else {
    const bool leaves_rgb =
        info(source.layout).rgb && options.color.matrix && *options.color.matrix != Matrix::kRgb;
    if (!leaves_rgb) layouts.push_back(source.layout);
    std::ranges::copy(fallbacks(source.layout), std::back_inserter(layouts));
  }
  std::string problem;
  for (PixelFormat layout : layouts) {
    Target target;
    target.format = source;
    target.format.layout = layout;
    target.format.memory = FrameMemory::kHost;
    target.format.color = target_color(codec, source, layout, options.color);
    target.av = encoder_format(codec, layout, target.format.color.range);
    if (target.av == AV_PIX_FMT_NONE) continue;
    const Conversion conversion = conversion_between(source, target.format);
    if (is_identity(conversion)) return target;
    const std::optional<std::string> why = why_unsupported(conversion);
    if (!why) return target;
    if (problem.empty()) problem = *why;
  }
  if (problem.empty()) {
    problem = std::string(codec.name) + " does not take " +
              std::string(info(layouts.front()).name) + "; it takes";
    for (AVPixelFormat format : formats_of(codec)) problem += ' ' + format_name(format);
    problem += ". Set convert.format to one of these that framelane converts to";
  }
  throw FeedError(FeedFault::kConfiguration, "encode " + options.name + ": " + problem);
}

/// MPEG-4 part 2 and older count time in frames, with few bits for the clock.
bool counts_in_frames(AVCodecID id) {
  switch (id) {
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_H263:
    case AV_CODEC_ID_H263P:
    case AV_CODEC_ID_MSMPEG4V2:
    case AV_CODEC_ID_MSMPEG4V3:
    case AV_CODEC_ID_WMV1:
    case AV_CODEC_ID_WMV2:
      return true;
    default:
      return false;
  }
}

/// Whether it takes nothing but surfaces of a device, which framelane does not make (VAAPI's).
bool takes_surfaces_alone(const AVCodec& codec) {
  const std::span<const AVPixelFormat> formats = formats_of(codec);
  return !formats.empty() && std::ranges::all_of(formats, [](AVPixelFormat format) {
    return (av_pix_fmt_desc_get(format)->flags & AV_PIX_FMT_FLAG_HWACCEL) != 0;
  });
}

bool is_hardware(const AVCodec& codec) {
  return (codec.capabilities & (AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID)) != 0;
}

void apply_options(AVCodecContext& context, const EncodeOptions& options,
                   const CodecCandidate& candidate) {
  for (const AvOption& option : candidate.options) {
    const AvLogCapture log;
    const int result =
        av_opt_set(&context, option.key.c_str(), option.value.c_str(), AV_OPT_SEARCH_CHILDREN);
    if (result == AVERROR_OPTION_NOT_FOUND) {
      throw FeedError(FeedFault::kConfiguration, "encode " + options.name + ": " + candidate.name +
                                                     " has no option \"" + option.key +
                                                     "\"; see ffmpeg -h encoder=" + candidate.name);
    }
    if (result < 0) {
      throw FeedError(FeedFault::kConfiguration, "encode " + options.name + ": " + candidate.name +
                                                     " rejects " + option.key + "=" + option.value +
                                                     ": " + av_error_text(result));
    }
  }
}

/// libx265 writes what it does to standard error by itself, unless told not to.
void silence_x265(AVCodecContext& context) {
  AVDictionary* parameters = nullptr;
  if (av_opt_get_dict_val(context.priv_data, "x265-params", 0, &parameters) < 0) return;
  av_dict_set(&parameters, "log-level", "error", AV_DICT_DONT_OVERWRITE);
  av_opt_set_dict_val(context.priv_data, "x265-params", parameters, 0);
  av_dict_free(&parameters);
}

CodecContextPtr make_context(const AVCodec& codec, const CodecCandidate& candidate,
                             const EncodeOptions& options, const FrameFormat& target,
                             AVPixelFormat format, bool global_header, int threads) {
  CodecContextPtr context(avcodec_alloc_context3(&codec));
  if (!context) throw std::bad_alloc();
  context->width = target.width;
  context->height = target.height;
  context->pix_fmt = format;
  context->time_base = target.time_base;
  // Without a rate, encoders take 1/time_base for it and choose absurd levels.
  context->framerate = target.frame_rate.num > 0 ? target.frame_rate : AVRational{25, 1};
  context->sample_aspect_ratio = target.sample_aspect_ratio;
  context->thread_count = threads;  // unless the options say otherwise
  const AvColorTags tags = tags_of(target.color);
  context->colorspace = tags.space;
  context->color_range = tags.range;
  context->color_primaries = tags.primaries;
  context->color_trc = tags.transfer;
  const PixelFormatInfo& shape = info(target.layout);
  if (shape.chroma_half_width) context->chroma_sample_location = tags.location;
  if (options.bitrate) context->bit_rate = *options.bitrate;
  if (options.gop) {
    const double rate = target.frame_rate.num > 0 ? av_q2d(target.frame_rate) : 25.0;
    const double seconds = std::chrono::duration<double>(*options.gop).count();
    context->gop_size = std::max(1, static_cast<int>(std::lround(seconds * rate)));
  }
  if (global_header) context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  apply_options(*context, options, candidate);
  if (candidate.name == "libx265") silence_x265(*context);
  return context;
}

MediaFormatRef media_of(const AVCodecContext& context, const FrameFormat& target,
                        const StreamFormat* audio) {
  auto media = std::make_shared<MediaFormat>();
  media->video.parameters.reset(avcodec_parameters_alloc());
  if (!media->video.parameters ||
      avcodec_parameters_from_context(media->video.parameters.get(), &context) < 0) {
    throw std::bad_alloc();
  }
  media->video.time_base = context.time_base;
  media->video.frame_rate = target.frame_rate;
  if (audio != nullptr) {
    media->audio = StreamFormat{copy_parameters(*audio->parameters), audio->time_base, {0, 1}};
  }
  return media;
}

bool chooses_gpu(const CodecCandidate& candidate, const AvOption& option) {
  return candidate.name.ends_with("_nvenc") && option.key == "gpu";
}

/// Why the hardware that an encoder needs cannot be used, nothing when it can: then the encoder
/// opens without any options.
std::optional<std::string> why_no_hardware(const AVCodec& codec, const CodecCandidate& candidate,
                                           const EncodeOptions& options, const Target& target) {
  CodecCandidate plain{codec.name};
  // Which GPU it is to be is no option that could be wrong, but the question.
  std::ranges::copy_if(candidate.options, std::back_inserter(plain.options),
                       [&](const AvOption& option) { return chooses_gpu(candidate, option); });
  const CodecContextPtr context =
      make_context(codec, plain, options, target.format, target.av, false, 0);
  const AvLogCapture log;
  const int result = avcodec_open2(context.get(), &codec, nullptr);
  if (result >= 0) return std::nullopt;
  return log.reason(av_error_text(result));
}

/// `opened_before`: for the same, so that nothing is wrong with what it was given.
[[noreturn]] void throw_open_failure(const EncodeOptions& options, const CodecCandidate& candidate,
                                     const FrameFormat& target, bool opened_before, int error,
                                     const std::string& reason) {
  const bool rejected =
      !opened_before && (error == AVERROR(EINVAL) || error == AVERROR_OPTION_NOT_FOUND ||
                         error == AVERROR_PATCHWELCOME || error == AVERROR(ENOSYS));
  const FeedFault fault = rejected                   ? FeedFault::kConfiguration
                          : error == AVERROR(ENOMEM) ? FeedFault::kMemory
                                                     : FeedFault::kEncoder;
  throw FeedError(fault, "encode " + options.name + ": " + candidate.name + " does not open " +
                             (opened_before ? "again " : "") + "for " +
                             std::to_string(target.width) + "x" + std::to_string(target.height) +
                             " " + std::string(info(target.layout).name) + ": " + reason +
                             (rejected ? "; check its options and the size" : ""));
}

}  // namespace

bool operator==(const FrameFormat& a, const FrameFormat& b) {
  const auto equal = [](AVRational x, AVRational y) { return x.num == y.num && x.den == y.den; };
  // The rate is a guess over a few frames, a little different at each connection: no reason to open
  // an encoder again.
  return a.layout == b.layout && a.width == b.width && a.height == b.height && a.color == b.color &&
         equal(a.time_base, b.time_base) && equal(a.sample_aspect_ratio, b.sample_aspect_ratio) &&
         a.memory == b.memory;
}

Conversion conversion_between(const FrameFormat& source, const FrameFormat& target) {
  return {source.width, source.height, source.layout, source.color, target.layout, target.color};
}

CodecCandidate choose_gpu(CodecCandidate candidate, std::string_view device) {
  constexpr std::string_view kCuda = "cuda:";
  const bool chosen = std::ranges::any_of(
      candidate.options, [&](const AvOption& option) { return chooses_gpu(candidate, option); });
  if (candidate.name.ends_with("_nvenc") && device.starts_with(kCuda) && !chosen) {
    candidate.options.push_back({"gpu", std::string(device.substr(kCuda.size()))});
  }
  return candidate;
}

std::shared_ptr<EncodePlan> make_encode_plan(const EncodeRequest& request) {
  std::string tried;
  const auto pass_over = [&tried](const CodecCandidate& candidate, const std::string& why) {
    tried += (tried.empty() ? "" : "; ") + candidate.name + ' ' + why;
  };
  for (const CodecCandidate& configured : request.options.codecs) {
    const CodecCandidate candidate = choose_gpu(configured, request.device);
    const AVCodec* codec = avcodec_find_encoder_by_name(candidate.name.c_str());
    if (codec == nullptr || codec->type != AVMEDIA_TYPE_VIDEO) {
      pass_over(candidate, "is not in this FFmpeg");
      continue;
    }
    if (takes_surfaces_alone(*codec)) {
      pass_over(candidate, "takes frames in a device's memory alone, which framelane has not");
      continue;
    }
    Target target = choose_target(*codec, request.options, request.source);
    if (counts_in_frames(codec->id) && target.format.frame_rate.num > 0) {
      target.format.time_base = av_inv_q(target.format.frame_rate);
    }
    // Rejected options are an error where the encoder is available, and no concern where it is not.
    if (is_hardware(*codec)) {
      if (const auto why = why_no_hardware(*codec, candidate, request.options, target)) {
        pass_over(candidate, "does not open here: " + *why);
        continue;
      }
    }
    const int threads = codec_threads(request.live);
    CodecContextPtr context = make_context(*codec, candidate, request.options, target.format,
                                           target.av, request.global_header, threads);
    const AvLogCapture log;
    const int result = avcodec_open2(context.get(), codec, nullptr);
    if (result < 0) {
      throw_open_failure(request.options, candidate, target.format, false, result,
                         log.reason(av_error_text(result)));
    }
    if (!tried.empty()) {
      log::warn("feed {}: encode {}: using {}, because {}", request.feed, request.options.name,
                candidate.name, tried);
    }
    auto plan = std::make_shared<EncodePlan>();
    plan->codec = candidate;
    plan->source_time_base = request.source.time_base;
    plan->target = target.format;
    plan->threads = threads;
    plan->media = media_of(*context, target.format, request.audio);
    plan->opened = std::move(context);
    return plan;
  }
  throw FeedError(FeedFault::kConfiguration, "encode " + request.options.name +
                                                 ": no encoder is available: " + tried +
                                                 "; framelane devices lists those that open");
}

CodecContextPtr reopen_encoder(const EncodeOptions& options, const EncodePlan& plan,
                               bool global_header) {
  const AVCodec* codec = avcodec_find_encoder_by_name(plan.codec.name.c_str());
  CodecContextPtr context =
      make_context(*codec, plan.codec, options, plan.target,
                   encoder_format(*codec, plan.target.layout, plan.target.color.range),
                   global_header, plan.threads);
  const AvLogCapture log;
  const int result = avcodec_open2(context.get(), codec, nullptr);
  if (result < 0) {
    throw_open_failure(options, plan.codec, plan.target, true, result,
                       log.reason(av_error_text(result)));
  }
  return context;
}

}  // namespace framelane
