// The kernels that only the suites have. Each call queues one launch on `stream` and returns at
// once. Pointers refer to device memory, which must live until the launch has ended.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane::bench {

/// Rows [row_begin, row_end) of BGRA to packed YUV 4:4:4 with classic_yuv. Rows of the source are
/// aligned to 16 bytes, those of the target to 4.
[[nodiscard]] cudaError_t enqueue_classic(const ConstImageView& source, const ImageView& target,
                                          int row_begin, int row_end, cudaStream_t stream);

/// BGRA to planar or packed YUV 4:4:4, exactly, by the obvious kernel: a pixel a thread.
[[nodiscard]] cudaError_t enqueue_pixel_a_thread(const Conversion& conversion,
                                                 const ConstImageView& source,
                                                 const ImageView& target, cudaStream_t stream);

/// c = a + b. Fewer than 2^31 elements, here and below, and at least one.
[[nodiscard]] cudaError_t enqueue_add(const float* a, const float* b, float* c, std::size_t count,
                                      cudaStream_t stream);

/// to[i] = mix_word(from[i], steps): a kernel whose duration can be chosen, and whose result is the
/// same on every machine. `from` and `to` may be equal.
[[nodiscard]] cudaError_t enqueue_mix(const std::uint32_t* from, std::uint32_t* to,
                                      std::size_t count, int steps, cudaStream_t stream);

}  // namespace framelane::bench
