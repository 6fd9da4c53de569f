#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// True for R'G'B' in full range, with any order of its bytes, to any YUV format.
bool is_cuda_rgb_to_yuv(const Conversion& conversion);

/// Requires is_cuda_rgb_to_yuv(conversion). Fast if the addresses and pitches of all frames of a
/// call are aligned: of sources to 16 bytes (24-bit ones: 4), of targets to 4. Otherwise all are
/// converted in the general way.
std::unique_ptr<const CudaConverter> make_cuda_rgb_to_yuv_converter(const Conversion& conversion);

}  // namespace framelane
