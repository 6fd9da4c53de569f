#pragma once

#include <cuda_runtime_api.h>

#include "kernels/image_view.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"

namespace framelane {

/// Queues a copy of rows [row_begin, row_end) of a picture, with the chroma rows that belong to
/// them, between host and device or within the device. Both images have the same format and size.
/// row_begin is even; row_end is even or the height. Throws CudaError.
void copy_rows(const ConstImageView& from, const ImageView& to, int row_begin, int row_end,
               cudaMemcpyKind kind, StreamRef stream);

}  // namespace framelane
