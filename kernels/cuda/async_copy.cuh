#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/arithmetic.cuh"

// Copies from device memory to shared memory for which a thread waits later, and which take none of
// its registers. (Where it waits for a load, it waits for all others that are on the same one of
// its six counters; and a kernel that reads tables needs all six.)

namespace framelane::cuda {

/// Begins to copy kBytes (4, 8 or 16), to which both addresses are aligned.
template <int kBytes>
FRAMELANE_HD void copy_async(void* shared, const std::uint8_t* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (kBytes == 16) {  // which need not go through the cache of the multiprocessor
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes)
                 : "memory");
  }
#else
  using Word = std::conditional_t<kBytes == 16, uint4,
                                  std::conditional_t<kBytes == 8, uint2, std::uint32_t> >;
  store(static_cast<std::uint8_t*>(shared), load<Word>(from));
#endif
}

/// Ends a group of copies.
FRAMELANE_HD void end_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until all of the thread's groups are there, but for the last kGroups.
template <int kGroups>
FRAMELANE_HD void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

}  // namespace framelane::cuda
