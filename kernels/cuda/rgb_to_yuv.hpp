#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// R'G'B' in full range, in any order of its bytes, to anything.
bool is_cuda_rgb_to_yuv(const Conversion& conversion);

/// Requires is_cuda_rgb_to_yuv(conversion). Frames that share a launch must all
/// be aligned: to 16 bytes (24-bit sources: 4) the source, to 4 the target,
/// addresses and pitches.
std::unique_ptr<const CudaConverter> make_cuda_rgb_to_yuv_converter(const Conversion& conversion);

}  // namespace framelane
