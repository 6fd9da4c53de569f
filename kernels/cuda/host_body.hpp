#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace framelane::cuda {

/// Blocks are rows of this many threads: four warps side by side. Most have one row.
inline constexpr unsigned kBlockThreads = 128;

/// Runs a kernel's body on the host, for every thread of so many blocks in
/// turn. (Of one that counts or sums, the threads' own work alone: not how
/// blocks share it, nor what they do with their sums.)
using HostBody = void (*)(const void* body, dim3 blocks);

}  // namespace framelane::cuda

/// The stand-in runtime's alone, and null where NVIDIA's is linked: says how
/// the host runs the kernel with this entry, how large its one parameter is,
/// and what blocks it has to be launched with. Any thread, any number of times.
extern "C" __attribute__((weak)) void framelane_cuda_host_body(const void* kernel,
                                                               std::size_t body_bytes,
                                                               framelane::cuda::HostBody run,
                                                               dim3 block);
