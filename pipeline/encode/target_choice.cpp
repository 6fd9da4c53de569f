#include "pipeline/encode/target_choice.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/conversion.hpp"
#include "pipeline/av/av_color.hpp"
#include "pipeline/base/color_override.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/encode/picture_choice.hpp"

namespace framelane {
namespace {

std::string format_name(AVPixelFormat format) {
  const char* name = av_get_pix_fmt_name(format);
  return name != nullptr ? name : "unknown";
}

/// The formats an encoder takes. Empty: any.
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

/// The colour that players assume for a codec whose stream cannot name it. Frames are converted to
/// it unless the configuration says otherwise.
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

/// Layouts to try, best first, if an encoder does not take the source's own. None has more chroma
/// samples than the source, and those that have as many come first. RGB begins with 4:2:0, which
/// every player can show.
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

/// How often frames come that the encode takes.
AVRational limited(AVRational source_rate, const std::optional<Rational>& limit) {
  if (!limit) return source_rate;
  const AVRational rate{limit->num, limit->den};
  return source_rate.num > 0 && av_cmp_q(source_rate, rate) < 0 ? source_rate : rate;
}

/// `height`: of the encoder's frames.
ColorSpec target_color(const AVCodec& codec, const FrameFormat& source, int height,
                       PixelFormat layout, const ColorOverride& wanted) {
  ColorSpec color = source.color;
  const PixelFormatInfo& from = info(source.layout);
  if (!info(layout).rgb) {
    if (from.rgb) {
      // Primaries and transfer stay unspecified if the source has no tags: RGB implies none.
      color.matrix = Matrix::kBt709;
      color.range = Range::kLimited;
      color.siting = Siting::kLeft;
    }
    const ImpliedColor implied = implied_color(codec.id, height);
    color.matrix = implied.matrix.value_or(color.matrix);
    color.range = implied.range.value_or(color.range);
    // Chroma that is already subsampled stays where it is.
    const bool places_chroma = !from.chroma_half_width && !from.chroma_half_height;
    if (places_chroma) color.siting = implied.siting.value_or(color.siting);
  }
  color.matrix = wanted.matrix.value_or(color.matrix);
  color.range = wanted.range.value_or(color.range);
  color.siting = wanted.siting.value_or(color.siting);
  return color;
}

}  // namespace

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

PictureSize with_whole_chroma(const PictureSize& size, PixelFormat layout) {
  const PixelFormatInfo& shape = info(layout);
  return {size.width + (shape.chroma_half_width ? size.width % 2 : 0),
          size.height + (shape.chroma_half_height ? size.height % 2 : 0)};
}

bool needs_whole_chroma(std::string_view encoder) {
  // x264's validate_parameters and x265's x265_check_params.
  return encoder == "libx264" || encoder == "libx265";
}

bool takes_only_surfaces(const AVCodec& codec) {
  const std::span<const AVPixelFormat> formats = formats_of(codec);
  return !formats.empty() && std::ranges::all_of(formats, [](AVPixelFormat format) {
    return (av_pix_fmt_desc_get(format)->flags & AV_PIX_FMT_FLAG_HWACCEL) != 0;
  });
}

EncodeTarget choose_target(const AVCodec& codec, const EncodeOptions& options,
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
  const auto picture = choose_picture(options.picture, {source.width, source.height},
                                      source.sample_aspect_ratio, problem);
  if (!picture) {
    throw FeedError(FeedFault::kConfiguration,
                    "encode " + options.name + ": " + problem +
                        "; correct convert.crop or convert.size (transcode: --crop, --size)");
  }
  for (PixelFormat layout : layouts) {
    EncodeTarget target;
    target.format = source;
    target.format.layout = layout;
    target.format.memory = FrameMemory::kHost;
    target.format.width = picture->size.width;
    target.format.height = picture->size.height;
    target.format.sample_aspect_ratio = picture->sample_aspect_ratio;
    target.format.frame_rate = limited(source.frame_rate, options.rate);
    target.scaling = picture->scaling;
    target.format.color = target_color(codec, source, picture->size.height, layout, options.color);
    target.av = encoder_format(codec, layout, target.format.color.range);
    if (target.av == AV_PIX_FMT_NONE) continue;
    const Conversion conversion = conversion_between(source, target.format, target.scaling);
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

}  // namespace framelane
