#pragma once

#include <cuda_runtime_api.h>

#include "kernels/image_view.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"

namespace framelane {

/// Queues the copy of rows [row_begin, row_end) of a picture, with the chroma rows they carry,
/// between host and device. Both images have the same format, size and signs of pitch. row_begin is
/// even; row_end is even or the height. Throws CudaError.
void copy_rows(const ConstImageView& from, const ImageView& to, int row_begin, int row_end,
               cudaMemcpyKind kind, const CudaStream& stream);

}  // namespace framelane
