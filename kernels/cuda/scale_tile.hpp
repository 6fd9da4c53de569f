#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter for pictures that do not become higher, in tiles. It takes RGB, and YUV or gray
/// whose matrix stays. Null if the conversion is another one, or if it needs more of the source for
/// a tile than a block has room for.
std::unique_ptr<const CudaConverter> make_cuda_scale_tile_converter(const Conversion& conversion);

}  // namespace framelane
