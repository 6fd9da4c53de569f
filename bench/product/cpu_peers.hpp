// Conversions of other libraries, on the calling thread.
#pragma once

#include <functional>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane::bench {

/// Converts a frame. One thread at a time.
using Convert = std::function<void(const ConstImageView& source, const ImageView& target)>;

/// FFmpeg's conversion, with the wanted matrices and ranges; null if it refuses them. Its library
/// is loaded at run time, so that the program runs without it; then this is null (has_swscale).
Convert make_swscale(const Conversion& conversion);
bool has_swscale();

/// Null if libyuv has no such conversion, or if the program was built without it (has_libyuv).
Convert make_libyuv(const Conversion& conversion);
bool has_libyuv();
/// The colour that libyuv converts RGB to, always; it does not change the colour of YUV.
inline constexpr ColorSpec kLibyuvColor{.matrix = Matrix::kBt601};

/// Null if zimg cannot do this, or if the program was built without it (has_zimg). It takes planes
/// of YUV alone, of sizes that are whole samples of chroma, whole pictures, and bicubic.
Convert make_zimg(const Conversion& conversion);
bool has_zimg();

}  // namespace framelane::bench
