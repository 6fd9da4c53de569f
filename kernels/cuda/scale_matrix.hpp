#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter that works on a GPU's matrix units (of Turing and later). It takes planar and
/// semi-planar YUV, and gray, whose matrix stays. Null if the conversion is another one, if 16 rows
/// of the target need more than 64 of the source, or 8 columns more than about 40, or if the source
/// has fewer rows than 16 of the target may need.
std::unique_ptr<const CudaConverter> make_cuda_scale_matrix_converter(const Conversion& conversion);

}  // namespace framelane
