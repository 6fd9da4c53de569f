// Conversions of other libraries, on the calling thread.
#pragma once

#include <functional>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane::bench {

/// Converts a frame. One thread at a time.
using Convert = std::function<void(const ConstImageView& source, const ImageView& target)>;

/// FFmpeg's, with the matrices and ranges that are asked for; null where it refuses. Its library is
/// loaded at run time, so that the benchmarks run where there is none: null then (has_swscale).
Convert make_swscale(const Conversion& conversion);
bool has_swscale();

/// Null where libyuv has none, or the program was built without it (has_libyuv).
Convert make_libyuv(const Conversion& conversion);
bool has_libyuv();
/// What libyuv makes of RGB, whatever is asked for; YUV keeps its own colour.
inline constexpr ColorSpec kLibyuvColor{.matrix = Matrix::kBt601};

}  // namespace framelane::bench
