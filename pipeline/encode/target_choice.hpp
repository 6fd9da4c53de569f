#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <optional>
#include <string_view>

#include "kernels/color_spec.hpp"
#include "kernels/pixel_format.hpp"
#include "pipeline/encode/encode_options.hpp"
#include "pipeline/encode/frame_format.hpp"

namespace framelane {

/// What an encoder is given: the frames' format, and FFmpeg's name for their layout.
struct EncodeTarget {
  FrameFormat format;
  AVPixelFormat av = AV_PIX_FMT_NONE;
  std::optional<Scaling> scaling{};  ///< nothing: frames are as large as the source's
};

/// Chooses the size, format and colour for an encoder (docs/colour.md). The layout is the
/// configured one; without one, the source's own if the encoder takes it; else the nearest. Throws
/// FeedError(kConfiguration) if the encoder takes none to which the source can be converted, or if
/// the source has no such part or size.
EncodeTarget choose_target(const AVCodec& codec, const EncodeOptions& options,
                           const FrameFormat& source);

/// FFmpeg's name under which the encoder takes this layout and range. Some encoders know full range
/// only by a name of its own (yuvj420p). AV_PIX_FMT_NONE if it takes neither name.
AVPixelFormat encoder_format(const AVCodec& codec, PixelFormat layout, Range range);

/// The size, or the next larger one in which every sample of chroma has all of its pixels.
PictureSize with_whole_chroma(const PictureSize& size, PixelFormat layout);

/// True if the encoder is known to take no other size than with_whole_chroma. False: it takes
/// others too, or nothing is known of it.
bool needs_whole_chroma(std::string_view encoder);

/// True if every format the encoder takes is a surface in a device's memory (VAAPI's encoders).
/// framelane makes no such surfaces.
bool takes_only_surfaces(const AVCodec& codec);

}  // namespace framelane
