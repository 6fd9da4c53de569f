#include "pipeline/av/av_color.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <array>
#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

struct FormatPair {
  AVPixelFormat av;
  PixelFormat layout;
  bool full_range;
};

// Of several entries for a layout the first is the one that av_format gives.
constexpr std::array kFormats{
    FormatPair{AV_PIX_FMT_BGRA, PixelFormat::kBgra, false},
    FormatPair{AV_PIX_FMT_BGR0, PixelFormat::kBgra, false},
    FormatPair{AV_PIX_FMT_RGBA, PixelFormat::kRgba, false},
    FormatPair{AV_PIX_FMT_RGB0, PixelFormat::kRgba, false},
    FormatPair{AV_PIX_FMT_ARGB, PixelFormat::kArgb, false},
    FormatPair{AV_PIX_FMT_0RGB, PixelFormat::kArgb, false},
    FormatPair{AV_PIX_FMT_ABGR, PixelFormat::kAbgr, false},
    FormatPair{AV_PIX_FMT_0BGR, PixelFormat::kAbgr, false},
    FormatPair{AV_PIX_FMT_BGR24, PixelFormat::kBgr24, false},
    FormatPair{AV_PIX_FMT_RGB24, PixelFormat::kRgb24, false},
    FormatPair{AV_PIX_FMT_YUV420P, PixelFormat::kI420, false},
    FormatPair{AV_PIX_FMT_YUVJ420P, PixelFormat::kI420, true},
    FormatPair{AV_PIX_FMT_NV12, PixelFormat::kNv12, false},
    FormatPair{AV_PIX_FMT_YUV422P, PixelFormat::kI422, false},
    FormatPair{AV_PIX_FMT_YUVJ422P, PixelFormat::kI422, true},
    FormatPair{AV_PIX_FMT_YUYV422, PixelFormat::kYuyv, false},
    FormatPair{AV_PIX_FMT_UYVY422, PixelFormat::kUyvy, false},
    FormatPair{AV_PIX_FMT_YUV444P, PixelFormat::kI444, false},
    FormatPair{AV_PIX_FMT_YUVJ444P, PixelFormat::kI444, true},
    FormatPair{AV_PIX_FMT_GRAY8, PixelFormat::kGray8, false},
};

const FormatPair* find(AVPixelFormat format) {
  for (const FormatPair& pair : kFormats) {
    if (pair.av == format) return &pair;
  }
  return nullptr;
}

Matrix matrix_of(AVColorSpace space, int height) {
  switch (space) {
    case AVCOL_SPC_BT709:
      return Matrix::kBt709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
      return Matrix::kBt601;
    case AVCOL_SPC_BT2020_NCL:
      return Matrix::kBt2020;
    case AVCOL_SPC_UNSPECIFIED:
    case AVCOL_SPC_RESERVED:
    case AVCOL_SPC_RGB:  // a YUV frame tagged RGB carries no information about its matrix
      return height < 720 ? Matrix::kBt601 : Matrix::kBt709;
    default: {
      const char* name = av_color_space_name(space);
      throw FeedError(FeedFault::kConfiguration,
                      std::string("the source's colour matrix ") + (name ? name : "(unknown)") +
                          " is not one framelane converts; set input.color.matrix to bt601, "
                          "bt709 or bt2020 to treat it as that");
    }
  }
}

Siting siting_of(AVChromaLocation location) {
  switch (location) {
    case AVCHROMA_LOC_CENTER:
      return Siting::kCenter;
    case AVCHROMA_LOC_TOPLEFT:
      return Siting::kTopLeft;
    default:
      return Siting::kLeft;
  }
}

}  // namespace

std::optional<PixelFormat> layout_of(AVPixelFormat format) {
  const FormatPair* pair = find(format);
  return pair != nullptr ? std::optional(pair->layout) : std::nullopt;
}

bool is_full_range_format(AVPixelFormat format) {
  const FormatPair* pair = find(format);
  return pair != nullptr && pair->full_range;
}

AVPixelFormat av_format(PixelFormat format) {
  for (const FormatPair& pair : kFormats) {
    if (pair.layout == format) return pair.av;
  }
  return AV_PIX_FMT_NONE;  // kYuv444: FFmpeg 5.1 has no such format
}

ColorSpec resolve_color(AVPixelFormat format, int height, const AvColorTags& tags,
                        const ColorOverride& override) {
  const std::optional<PixelFormat> layout = layout_of(format);
  const bool rgb = layout && info(*layout).rgb;
  ColorSpec color;
  if (rgb) {
    color.matrix = Matrix::kRgb;
    color.range = tags.range == AVCOL_RANGE_MPEG ? Range::kLimited : Range::kFull;
  } else {
    color.matrix = override.matrix && *override.matrix != Matrix::kRgb
                       ? *override.matrix
                       : matrix_of(tags.space, height);
    const bool full = is_full_range_format(format) || tags.range == AVCOL_RANGE_JPEG;
    color.range = full ? Range::kFull : Range::kLimited;
  }
  if (override.range) color.range = *override.range;
  color.siting = override.siting ? *override.siting : siting_of(tags.location);
  // H.273 reserves 0 and 3: they say nothing, and no encoder may write them.
  const auto passed_on = [](int tag) {
    return static_cast<std::uint8_t>(tag == 0 || tag == 3 ? kUnspecified : tag);
  };
  color.primaries = passed_on(tags.primaries);
  color.transfer = passed_on(tags.transfer);
  return color;
}

AvColorTags tags_of(const ColorSpec& color) {
  AvColorTags tags;
  switch (color.matrix) {
    case Matrix::kRgb:
      tags.space = AVCOL_SPC_RGB;
      break;
    case Matrix::kBt601:
      tags.space = AVCOL_SPC_SMPTE170M;
      break;
    case Matrix::kBt709:
      tags.space = AVCOL_SPC_BT709;
      break;
    case Matrix::kBt2020:
      tags.space = AVCOL_SPC_BT2020_NCL;
      break;
  }
  tags.range = color.range == Range::kFull ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  switch (color.siting) {
    case Siting::kLeft:
      tags.location = AVCHROMA_LOC_LEFT;
      break;
    case Siting::kCenter:
      tags.location = AVCHROMA_LOC_CENTER;
      break;
    case Siting::kTopLeft:
      tags.location = AVCHROMA_LOC_TOPLEFT;
      break;
  }
  tags.primaries = static_cast<AVColorPrimaries>(color.primaries);
  tags.transfer = static_cast<AVColorTransferCharacteristic>(color.transfer);
  return tags;
}

}  // namespace framelane
