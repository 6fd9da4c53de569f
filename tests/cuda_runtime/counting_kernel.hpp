#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace framelane {

/// Queues a kernel that adds 1 to each of `count` numbers in device memory.
cudaError_t enqueue_count(std::uint32_t* numbers, unsigned count, cudaStream_t stream);
/// Launches a kernel with <<<>>>, for which the stand-in has no host body.
cudaError_t enqueue_plain_kernel(cudaStream_t stream);

}  // namespace framelane
