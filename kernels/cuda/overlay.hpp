#pragma once

#include <driver_types.h>

#include <cstdint>
#include <span>

#include "kernels/overlay.hpp"

namespace framelane {

/// Rows [row_begin, row_end) of a frame in device memory that an overlay is drawn over. `bytes`: a
/// copy of overlay->bytes() in device memory.
struct CudaDrawing {
  const Overlay* overlay;
  const std::uint8_t* bytes;
  ImageView frame;
  int row_begin = 0;
  int row_end = 0;
};

/// Queues blend (kernels/overlay.hpp) of each, in this order where they lie one over the other. One
/// launch draws many of them, of any frames: the next begins with one that lies over another of the
/// last, and after 32 planes. Queues nothing if no row is drawn over. Otherwise as
/// CudaConverter::enqueue.
[[nodiscard]] cudaError_t enqueue_blends(std::span<const CudaDrawing> drawings,
                                         cudaStream_t stream);

/// As CudaConverter::load.
[[nodiscard]] cudaError_t load_blend();

}  // namespace framelane
