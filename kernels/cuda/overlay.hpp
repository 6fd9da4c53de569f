#pragma once

#include <driver_types.h>

#include <cstdint>

#include "kernels/overlay.hpp"

namespace framelane {

/// Queues blend (kernels/overlay.hpp) for a frame in device memory. `bytes`: a copy of
/// overlay.bytes() in device memory. Queues nothing if none of these rows is drawn over. Otherwise
/// as CudaConverter::enqueue.
[[nodiscard]] cudaError_t enqueue_blend(const Overlay& overlay, const std::uint8_t* bytes,
                                        const ImageView& frame, int row_begin, int row_end,
                                        cudaStream_t stream);

/// As CudaConverter::load.
[[nodiscard]] cudaError_t load_blend();

}  // namespace framelane
