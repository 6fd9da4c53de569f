#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// The converter from YUV to YUV of the same subsampling and matrix in planes, at the speed of
/// memory for frames whose rows are 16-byte aligned and in the general way for others; null for
/// other conversions.
std::unique_ptr<const CudaConverter> make_cuda_remap_converter(const Conversion& conversion);

}  // namespace framelane
