#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/cuda/host_body.hpp"

// How kernels are written here. A kernel is a body: a trivially copyable function object that has
// the parameters as members, and whose `__host__ __device__ void operator()(ThreadIndex) const` is
// what one thread does. The GPU runs it in a grid; the stand-in runtime of the tests runs the same
// body in a loop. For .cu files only.

#define FRAMELANE_HD __host__ __device__ __forceinline__
#ifdef __CUDA_ARCH__
#define FRAMELANE_UNROLL _Pragma("unroll")
#define FRAMELANE_NO_UNROLL _Pragma("unroll 1")
#else
#define FRAMELANE_UNROLL  // the host compiler would warn about a pragma that it does not know
#define FRAMELANE_NO_UNROLL
#endif

namespace framelane::cuda {

inline constexpr int kWarp = 32;

/// Which thread of a launch this is, counted over the whole grid: x in threads, y and z in blocks.
struct ThreadIndex {
  unsigned x, y, z;
};

/// How many threads a multiprocessor must be able to hold, which limits a kernel's registers. kAny:
/// no limit. kHigh: 1536 threads with 40 registers each, so that others work while some wait for
/// memory.
enum class Residency { kAny, kHigh };

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr unsigned kHighBlocks = 8;  // Turing holds 1024 threads
#else
inline constexpr unsigned kHighBlocks = 12;
#endif

template <typename Body, Residency kResidency>
__global__ void __launch_bounds__(kBlockThreads, kResidency == Residency::kHigh ? kHighBlocks : 1)
    kernel_entry(const __grid_constant__ Body body) {
  body({blockIdx.x * kBlockThreads + threadIdx.x, blockIdx.y, blockIdx.z});
}

template <typename Body>
void run_on_host(const void* body, dim3 blocks) {
  const Body& run = *static_cast<const Body*>(body);
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x * kBlockThreads; ++x) run({x, y, z});
    }
  }
}

/// Queues `body` on `stream` for `columns` by `rows` by `layers` threads, and for some columns
/// more, to fill whole blocks. Returns at once; the body is copied. The result is that of this
/// launch, unless the device has failed before.
template <Residency kResidency, typename Body>
[[nodiscard]] cudaError_t launch(int columns, int rows, int layers, cudaStream_t stream,
                                 const Body& body) {
  static_assert(std::is_trivially_copyable_v<Body> && sizeof(Body) <= 4096);
  const auto* kernel = reinterpret_cast<const void*>(&kernel_entry<Body, kResidency>);
  if (framelane_cuda_host_body != nullptr) {
    framelane_cuda_host_body(kernel, sizeof(Body), &run_on_host<Body>, dim3(kBlockThreads));
  }
  const dim3 blocks((static_cast<unsigned>(columns) + kBlockThreads - 1) / kBlockThreads,
                    static_cast<unsigned>(rows), static_cast<unsigned>(layers));
  void* parameters[] = {const_cast<Body*>(&body)};
  return cudaLaunchKernel(kernel, blocks, dim3(kBlockThreads), parameters, 0, stream);
}

/// Loads onto the current device what launch() of such a body needs. CUDA would do so at the first
/// launch, but then a lack of memory would be found while a feed runs.
template <Residency kResidency, typename Body>
[[nodiscard]] cudaError_t load() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes,
                               reinterpret_cast<const void*>(&kernel_entry<Body, kResidency>));
}

}  // namespace framelane::cuda
