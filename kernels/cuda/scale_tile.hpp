#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter that works in tiles. It takes RGB, and YUV or gray whose matrix stays, if a row of
/// the source is part of at most six rows of the target: all that becomes smaller, and with short
/// filters what becomes up to 1.5 times as high. Null if the conversion is another one, or if it
/// needs more of the source for a tile than a block has room for.
std::unique_ptr<const CudaConverter> make_cuda_scale_tile_converter(const Conversion& conversion);

}  // namespace framelane
