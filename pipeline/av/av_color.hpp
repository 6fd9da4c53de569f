#pragma once

extern "C" {
#include <libavutil/pixfmt.h>
}

#include <optional>

#include "kernels/color_spec.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/base/color_override.hpp"

namespace framelane {

/// Our layout of an FFmpeg format (yuvj420p gives kI420, bgr0 gives kBgra), or nothing when
/// swscale has to bring it to one of ours first.
std::optional<PixelFormat> layout_of(AVPixelFormat format);
/// True for FFmpeg's yuvj formats, which say "full range" by their name.
bool is_full_range_format(AVPixelFormat format);
/// FFmpeg's format of a layout, never a yuvj one.
AVPixelFormat av_format(PixelFormat format);

/// Tags of a frame or stream as FFmpeg has them.
struct AvColorTags {
  AVColorSpace space = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  AVChromaLocation location = AVCHROMA_LOC_UNSPECIFIED;
  AVColorPrimaries primaries = AVCOL_PRI_UNSPECIFIED;
  AVColorTransferCharacteristic transfer = AVCOL_TRC_UNSPECIFIED;
};

/// Resolves tags into a complete ColorSpec (design: untagged YUV is BT.601 below 720 lines and
/// BT.709 from there, limited unless the format is a J one; untagged siting is left; RGB is rgb,
/// full). `override` wins over tags. Throws FeedError(kConfiguration), naming input.color.matrix,
/// when a tag names a matrix framelane does not know (YCgCo, say) and nothing overrides it.
ColorSpec resolve_color(AVPixelFormat format, int height, const AvColorTags& tags,
                        const ColorOverride& override);
/// The tags to write for a ColorSpec.
AvColorTags tags_of(const ColorSpec& color);

}  // namespace framelane
