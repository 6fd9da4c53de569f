#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace framelane::bench {

/// Makes a CUDA graph of what enqueue(0) to enqueue(times - 1) queue on `stream`; a call of the
/// result launches all of it at once. Making it may take milliseconds, and runs enqueue(0) once
/// before. May throw CudaError. Null in programs that are linked with another runtime than
/// NVIDIA's, such as the tests.
[[nodiscard]] std::function<void()> make_graph(int times, cudaStream_t stream,
                                               const std::function<cudaError_t(int)>& enqueue)
    __attribute__((weak));

}  // namespace framelane::bench
