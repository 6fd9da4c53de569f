// Kernels that add up numbers, from the simplest to the fastest. Each call queues one launch on
// `stream` and returns at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace framelane::bench {

enum class SumWay {
  kOneThread,
  kOneBlock,     ///< each of its threads adds what it has to the sum, atomically
  kManyBlocks,   ///< the same with the threads of many blocks
  kTree,         ///< many blocks, each of which adds up in shared memory, halving the threads
  kShuffle,      ///< the same, within a warp by exchange of registers
  kVectorLoads,  ///< the same, with four numbers a load
};
inline constexpr SumWay kSumWays[] = {SumWay::kOneThread, SumWay::kOneBlock, SumWay::kManyBlocks,
                                      SumWay::kTree,      SumWay::kShuffle,  SumWay::kVectorLoads};
const char* name_of(SumWay way);

/// Adds `count` numbers to *sum. `values` is aligned to 16 bytes. The order of the additions is not
/// defined, so the result is exact only if no partial sum is rounded.
[[nodiscard]] cudaError_t enqueue_sum(SumWay way, const float* values, std::size_t count,
                                      float* sum, cudaStream_t stream);

/// Adds the numbers to sums[i] for each i below `times`, in one launch that works as kVectorLoads.
/// The sums must be 0 before. The numbers are read again for each sum.
[[nodiscard]] cudaError_t enqueue_sums(const float* values, std::size_t count, float* sums,
                                       int times, cudaStream_t stream);

/// A launch of as many threads as kVectorLoads has, which do nothing.
[[nodiscard]] cudaError_t enqueue_nothing(std::size_t count, cudaStream_t stream);

/// The same sum many times over: sums[i] for each i, all 0 before.
struct ManySums {
  const float* values;
  std::size_t count;
  float* sums;
  int times;
  cudaStream_t stream;
};
/// Queues all of the sums by CUB's reduction. Null in programs that are linked with another runtime
/// than NVIDIA's, such as the tests. Preparing may take milliseconds. May throw CudaError.
[[nodiscard]] std::function<void()> make_cub_sums(const ManySums& sums) __attribute__((weak));

}  // namespace framelane::bench
