#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace framelane::cuda {

/// Blocks are rows of this many threads: four warps side by side. Most have one row.
inline constexpr unsigned kBlockThreads = 128;

/// Runs a kernel's body on the host, for every thread of so many blocks in
/// turn.
using HostBody = void (*)(const void* body, dim3 blocks);

}  // namespace framelane::cuda

/// The stand-in runtime's alone, and null where NVIDIA's is linked: says how
/// the host runs the kernel with this entry, and how large its one parameter
/// is. Any thread, any number of times.
extern "C" __attribute__((weak)) void framelane_cuda_host_body(const void* kernel,
                                                               std::size_t body_bytes,
                                                               framelane::cuda::HostBody run);
