#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace framelane::cuda {

/// Threads of a block, in one row: four warps. (Blocks of kernels that count are larger.)
inline constexpr unsigned kBlockThreads = 128;

/// Runs a kernel's body on the host, for every thread of `blocks` blocks, one after another. Of a
/// body that counts or sums, only the threads' own work is run: not how a block adds up its
/// results.
using HostBody = void (*)(const void* body, dim3 blocks);

}  // namespace framelane::cuda

/// Tells the stand-in runtime of the tests how the host runs the kernel with this entry point, how
/// large its one parameter is, and which size its blocks must have. Null if NVIDIA's runtime is
/// linked. Any thread, any number of times.
extern "C" __attribute__((weak)) void framelane_cuda_host_body(const void* kernel,
                                                               std::size_t body_bytes,
                                                               framelane::cuda::HostBody run,
                                                               dim3 block);
