#pragma once

extern "C" {
#include <libavutil/pixfmt.h>
}

#include <optional>

#include "kernels/color_spec.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/base/color_override.hpp"

namespace framelane {

/// The layout that an FFmpeg format has with us (kI420 for yuvj420p, kBgra for bgr0); nothing when
/// it has none, and swscale has to convert to one of ours first.
std::optional<PixelFormat> layout_of(AVPixelFormat format);
/// True for FFmpeg's yuvj formats, whose name says that they are full range.
bool is_full_range_format(AVPixelFormat format);
/// FFmpeg's format of a layout, never a yuvj one; AV_PIX_FMT_NONE for kYuv444, which has none.
AVPixelFormat av_format(PixelFormat format);

/// The colour tags of a frame or stream, in FFmpeg's terms.
struct AvColorTags {
  AVColorSpace space = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  AVChromaLocation location = AVCHROMA_LOC_UNSPECIFIED;
  AVColorPrimaries primaries = AVCOL_PRI_UNSPECIFIED;
  AVColorTransferCharacteristic transfer = AVCOL_TRC_UNSPECIFIED;
};

/// Resolves tags into a complete ColorSpec; `override` wins over tags. Untagged YUV is BT.601 below
/// 720 lines and BT.709 from there, and limited unless the format is a yuvj one; untagged siting is
/// left. RGB has the matrix rgb and is full unless tagged limited. Throws
/// FeedError(kConfiguration), naming input.color.matrix, when the tags name a matrix that framelane
/// does not know (such as YCgCo) and `override` names none.
ColorSpec resolve_color(AVPixelFormat format, int height, const AvColorTags& tags,
                        const ColorOverride& override);
/// The tags to write for a ColorSpec.
AvColorTags tags_of(const ColorSpec& color);

}  // namespace framelane
