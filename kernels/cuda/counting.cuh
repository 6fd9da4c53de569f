#pragma once

#include <cassert>

#include "kernels/cuda/kernel.hpp"
#include "kernels/luma_histogram.hpp"

// Kernels that count luma samples (kernels/luma_histogram.hpp) while they have them in registers. A
// block counts in shared memory and adds its counts to the frame's when it ends. So there is only
// one block on each multiprocessor, which converts its share of the rows in turns. A thread starts
// to read for its next turn before it works on this one; otherwise it would wait for memory in
// every turn. That is why a counting body has two parts:
//
//   Input read(ThreadIndex) const;
//   void operator()(ThreadIndex, const Input&, LumaCount) const;
//
// Measured on an H100, BGRA to NV12: counting costs 4.4 % at 8K, 10 % at 4K and 15 % at 1080p;
// without reading ahead it costs 25, 31 and 44 % (docs/benchmarks.md).

namespace framelane::cuda {

/// Stands for LumaCount in kernels that do not count.
struct NoCount {
  FRAMELANE_HD void operator()(std::uint32_t, int) const {}
};

/// Threads of a block: the largest block there is, with 64 registers for each thread.
inline constexpr unsigned kCountingThreads = 1024;

/// Where a thread counts: on the GPU in the shared memory of its block, on the host directly in the
/// frame's counts.
struct LumaCount {
  std::uint32_t* counters;

  /// To be called by all threads of the block before any counts.
  FRAMELANE_HD void begin() const {
#ifdef __CUDA_ARCH__
    for (unsigned value = threadIdx.x; value < kLumaValues; value += kCountingThreads) {
      counters[value] = 0;
    }
    __syncthreads();
#endif
  }
  /// To be called by all threads of the block after counting. Adds the block's counts to the
  /// frame's.
  FRAMELANE_HD void end(std::uint32_t* counts) const {
#ifdef __CUDA_ARCH__
    __syncthreads();
    for (unsigned value = threadIdx.x; value < kLumaValues; value += kCountingThreads) {
      if (counters[value] != 0) atomicAdd(counts + value, counters[value]);
    }
#else
    assert(counters == counts);
    static_cast<void>(counts);
#endif
  }

  /// Counts the first `count` of the four samples in a word; none if `count` is not positive.
  FRAMELANE_HD void operator()(std::uint32_t samples, int count) const {
    FRAMELANE_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i < count) add(samples >> 8 * i & 0xFF);
    }
  }

 private:
  FRAMELANE_HD void add(std::uint32_t sample) const {
#ifdef __CUDA_ARCH__
    atomicAdd(counters + sample, 1U);
#else
    __atomic_fetch_add(counters + sample, 1U, __ATOMIC_RELAXED);
#endif
  }
};

/// The parameter of one launch, which runs `body` for `columns` by `rows` threads. A warp's turn is
/// 32 columns of a row, and `across` turns make a row.
template <typename Body>
struct Counting {
  Body body;
  std::uint32_t* counts;  ///< the frame's, to which this launch adds
  unsigned columns, rows;
  unsigned across;
};

/// The turns of one thread, which is `lane` of `warp`. Each warp takes every `warps`-th turn, so
/// that all warps together take each turn once.
template <typename Body>
FRAMELANE_HD void take_turns(const Counting<Body>& counting, unsigned warp, unsigned warps,
                             unsigned lane, LumaCount count) {
  const unsigned rows_a_turn = warps / counting.across;
  const unsigned columns_a_turn = warps % counting.across * kWarp;
  const unsigned row_end = counting.across * kWarp;
  // A thread beyond the last column or row reads at the last one instead, and does not use it.
  const auto read = [&](ThreadIndex at) {
    at.x = at.x < counting.columns ? at.x : counting.columns - 1;
    at.y = at.y < counting.rows ? at.y : counting.rows - 1;
    return counting.body.read(at);
  };

  ThreadIndex at{warp % counting.across * kWarp + lane, warp / counting.across, 0};
  auto input = read(at);
  count.begin();
  while (at.y < counting.rows) {
    ThreadIndex next{at.x + columns_a_turn, at.y + rows_a_turn, 0};
    if (next.x >= row_end) {
      next.x -= row_end;
      ++next.y;
    }
    const auto next_input = read(next);
    if (at.x < counting.columns) counting.body(at, input, count);
    input = next_input;
    at = next;
  }
  count.end(counting.counts);
}

template <typename Body>
__global__ void __launch_bounds__(kCountingThreads, 1)
    counting_entry(const __grid_constant__ Counting<Body> counting) {
  __shared__ std::uint32_t counters[kLumaValues];
  const unsigned thread = blockIdx.x * kCountingThreads + threadIdx.x;
  take_turns(counting, thread / kWarp, gridDim.x * (kCountingThreads / kWarp), thread % kWarp,
             LumaCount{counters});
}

template <typename Body>
void count_on_host(const void* counting, dim3) {
  const auto& run = *static_cast<const Counting<Body>*>(counting);
  constexpr unsigned kWarps = 3;  // so few that each takes many turns
  for (unsigned thread = 0; thread < kWarps * kWarp; ++thread) {
    take_turns(run, thread / kWarp, kWarps, thread % kWarp, LumaCount{run.counts});
  }
}

/// As launch() with one layer. What the body counts is added to `counts` in device memory. Requires
/// at least one column and one row.
template <typename Body>
[[nodiscard]] cudaError_t launch_counting(int columns, int rows, cudaStream_t stream,
                                          const Body& body, std::uint32_t* counts) {
  assert(columns > 0 && rows > 0);
  const auto ceil_div = [](unsigned a, unsigned b) { return (a + b - 1) / b; };
  Counting<Body> counting{body, counts, static_cast<unsigned>(columns), static_cast<unsigned>(rows),
                          0};
  counting.across = ceil_div(counting.columns, kWarp);
  static_assert(std::is_trivially_copyable_v<Counting<Body>> && sizeof counting <= 4096);
  const auto* kernel = reinterpret_cast<const void*>(&counting_entry<Body>);
  if (framelane_cuda_host_body != nullptr) {
    framelane_cuda_host_body(kernel, sizeof counting, &count_on_host<Body>, dim3(kCountingThreads));
  }
  int device = 0, multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  const unsigned most = ceil_div(counting.across * counting.rows, kCountingThreads / kWarp);
  const unsigned blocks = static_cast<unsigned>(multiprocessors);
  void* parameters[] = {&counting};
  return cudaLaunchKernel(kernel, dim3(blocks < most ? blocks : most), dim3(kCountingThreads),
                          parameters, 0, stream);
}

/// As load(), for what launch_counting() launches.
template <typename Body>
[[nodiscard]] cudaError_t load_counting() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&counting_entry<Body>));
}

}  // namespace framelane::cuda
