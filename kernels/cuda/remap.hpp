#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter from planar YUV to planar YUV of the same subsampling and matrix; null for other
/// conversions. Frames whose rows are aligned to 16 bytes are converted at the speed of memory,
/// others in the general way.
std::unique_ptr<const CudaConverter> make_cuda_remap_converter(const Conversion& conversion);

}  // namespace framelane
