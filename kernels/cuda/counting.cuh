#pragma once

#include <cassert>

#include "kernels/cuda/kernel.hpp"
#include "kernels/luma_histogram.hpp"

// Kernels that count luma samples (kernels/luma_histogram.hpp) while they have them in registers.
// The body is called with a LumaCount beside the thread's index, for rows that are far apart, so
// that a block has many samples to count before it adds its counts to the frame's. It counts in
// shared memory, in columns: every lane of a warp has a counter of its own for each value, in a
// bank of its own, so that a black frame takes no longer than noise.

namespace framelane::cuda {

/// For a body that is to count nothing.
struct NoCount {
  FRAMELANE_HD void operator()(std::uint32_t, int) const {}
};

/// Where a thread counts: every kColumns-th counter from `counters` on; on the host, the frame's.
template <int kColumns>
struct LumaCount {
  std::uint32_t* counters;

  /// The first `count` of the four samples in a word.
  FRAMELANE_HD void operator()(std::uint32_t samples, int count) const {
    FRAMELANE_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i < count) add(samples >> 8 * i & 0xFF);
    }
  }

 private:
  FRAMELANE_HD void add(std::uint32_t sample) const {
#ifdef __CUDA_ARCH__
    atomicAdd(counters + sample * kColumns, 1U);
#else
    __atomic_fetch_add(counters + sample, 1U, __ATOMIC_RELAXED);
#endif
  }
};

/// Blocks of kBlockThreads by `kRows` threads, and counters for each value.
template <int kRows, int kColumns>
struct CountingBlock {
  static constexpr int rows = kRows;
  static constexpr int columns = kColumns;
};
/// 32 KiB a block: three blocks of 512 threads on a multiprocessor.
using DefaultCountingBlock = CountingBlock<4, 32>;

/// What one launch does: `body` for all threads in `rows` rows.
template <typename Body>
struct Counting {
  Body body;
  std::uint32_t* counts;  ///< of the frame; those of these rows are added
  int rows;
};

template <typename Body, typename Block>
__global__ void __launch_bounds__(kBlockThreads* Block::rows, kHighBlocks / Block::rows)
    counting_entry(const __grid_constant__ Counting<Body> counting) {
  constexpr unsigned kThreads = kBlockThreads * Block::rows;
  constexpr unsigned kColumns = Block::columns;
  __shared__ std::uint32_t counters[kLumaValues * kColumns];
  const unsigned thread = threadIdx.y * kBlockThreads + threadIdx.x;
  for (unsigned i = thread; i < kLumaValues * kColumns; i += kThreads) counters[i] = 0;
  __syncthreads();

  const LumaCount<Block::columns> count{counters + thread % kColumns};
  const unsigned x = blockIdx.x * kBlockThreads + threadIdx.x;
  for (unsigned y = blockIdx.y * Block::rows + threadIdx.y;
       y < static_cast<unsigned>(counting.rows); y += gridDim.y * Block::rows) {
    counting.body({x, y, 0}, count);
  }

  __syncthreads();
  for (unsigned value = thread; value < kLumaValues; value += kThreads) {
    std::uint32_t sum = 0;
    // Lanes begin in different banks.
    for (unsigned i = 0; i < kColumns; ++i) {
      sum += counters[value * kColumns + (value + i) % kColumns];
    }
    if (sum != 0) atomicAdd(counting.counts + value, sum);
  }
}

template <typename Body, typename Block>
void count_on_host(const void* counting, dim3 blocks) {
  const auto& run = *static_cast<const Counting<Body>*>(counting);
  const LumaCount<Block::columns> count{run.counts};
  for (unsigned y = 0; y < static_cast<unsigned>(run.rows); ++y) {
    for (unsigned x = 0; x < blocks.x * kBlockThreads; ++x) run.body({x, y, 0}, count);
  }
}

/// How many blocks of so many threads the current device runs at once.
inline cudaError_t blocks_at_once(int block_threads, int& blocks) {
  int device = 0, multiprocessors = 0, threads = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
  constexpr int kResident = 1536;  // as Residency::kHigh, whatever more there may be
  blocks = multiprocessors * ((threads < kResident ? threads : kResident) / block_threads);
  return error;
}

/// As launch(), in one layer, with what the body counts added to `counts` in device memory.
/// Requires rows.
template <typename Body, typename Block = DefaultCountingBlock>
[[nodiscard]] cudaError_t launch_counting(int columns, int rows, cudaStream_t stream,
                                          const Body& body, std::uint32_t* counts) {
  assert(rows > 0);
  Counting<Body> counting{body, counts, rows};
  static_assert(std::is_trivially_copyable_v<Counting<Body>> && sizeof counting <= 4096);
  const auto* kernel = reinterpret_cast<const void*>(&counting_entry<Body, Block>);
  if (framelane_cuda_host_body != nullptr) {
    framelane_cuda_host_body(kernel, sizeof counting, &count_on_host<Body, Block>,
                             dim3(kBlockThreads, Block::rows));
  }
  int at_once = 0;
  constexpr int kBlockSize = static_cast<int>(kBlockThreads) * Block::rows;
  const cudaError_t error = blocks_at_once(kBlockSize, at_once);
  if (error != cudaSuccess) return error;
  // All blocks run at once, and all have the same number of turns, so that none is waited for.
  const auto ceil_div = [](int a, int b) { return (a + b - 1) / b; };
  const int across = ceil_div(columns, static_cast<int>(kBlockThreads));
  const int all_down = ceil_div(rows, Block::rows);
  const int at_once_down = at_once > across ? at_once / across : 1;
  const int turns = ceil_div(all_down, at_once_down);
  const dim3 blocks(static_cast<unsigned>(across),
                    static_cast<unsigned>(ceil_div(all_down, turns)));
  void* parameters[] = {&counting};
  return cudaLaunchKernel(kernel, blocks, dim3(kBlockThreads, Block::rows), parameters, 0, stream);
}

/// As load(), for launch_counting() of such a body.
template <typename Body, typename Block = DefaultCountingBlock>
[[nodiscard]] cudaError_t load_counting() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes,
                               reinterpret_cast<const void*>(&counting_entry<Body, Block>));
}

}  // namespace framelane::cuda
