#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter from packed 4:2:2 (YUYV, UYVY) to I420, NV12 or I422 of the same colours, as webcams
/// and capture cards need it; null for other conversions. Frames whose rows are aligned to 16 bytes
/// are converted at the speed of memory, others in the general way.
std::unique_ptr<const CudaConverter> make_cuda_unpack_converter(const Conversion& conversion);

}  // namespace framelane
