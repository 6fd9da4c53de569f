#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter between I420 and NV12 of different matrices; null for other conversions. Frames
/// whose rows are aligned to 8 bytes are converted fast, others in the general way.
std::unique_ptr<const CudaConverter> make_cuda_rematrix_converter(const Conversion& conversion);

}  // namespace framelane
