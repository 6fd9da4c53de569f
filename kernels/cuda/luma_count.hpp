#pragma once

#include <driver_types.h>

#include <cstdint>

#include "kernels/image_view.hpp"

namespace framelane {

/// Queues count_luma (kernels/luma_histogram.hpp) for a picture in device memory: adds the luma
/// samples of rows [row_begin, row_end) to the kLumaValues counts at `counts`, in device memory
/// too. Otherwise as CudaConverter::enqueue.
[[nodiscard]] cudaError_t enqueue_luma_count(const ConstImageView& image, int row_begin,
                                             int row_end, std::uint32_t* counts,
                                             cudaStream_t stream);

/// As CudaConverter::load.
[[nodiscard]] cudaError_t load_luma_count();

}  // namespace framelane
