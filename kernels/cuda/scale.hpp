#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter for any conversion to another size, of frames of any alignment. It has constants.
std::unique_ptr<const CudaConverter> make_cuda_scale_converter(const Conversion& conversion);

}  // namespace framelane
