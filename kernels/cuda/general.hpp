#pragma once

#include <memory>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter for every conversion that CudaConverter::make takes.
std::unique_ptr<const CudaConverter> make_general_cuda_converter(const Conversion& conversion);

}  // namespace framelane
