#include "bench/experiments/sum_kernels.hpp"

#include <algorithm>

#include "kernels/cuda/kernel.hpp"

namespace framelane::bench {
namespace {

constexpr unsigned kWarp = 32;

/// A thread of a launch: its number within its block, its block, how many blocks one sum has, and
/// which of several sums it adds up.
struct BlockThread {
  unsigned thread, block, blocks, time;
};

// A kernel whose threads wait for each other: a body with `phases`, which all threads of a block
// end before any begins the next. So the host can run it too, thread by thread.
template <typename Body>
__global__ void __launch_bounds__(Body::kThreads) block_entry(const __grid_constant__ Body body) {
  __shared__ typename Body::Shared shared;
  FRAMELANE_UNROLL
  for (int phase = 0; phase < Body::kPhases; ++phase) {
    if (phase > 0) __syncthreads();
    body(phase, {threadIdx.x, blockIdx.x, gridDim.x, blockIdx.y}, shared);
  }
}

template <typename Body>
void run_blocks_on_host(const void* body, dim3 blocks) {
  const Body& run = *static_cast<const Body*>(body);
  for (unsigned time = 0; time < blocks.y; ++time) {
    for (unsigned block = 0; block < blocks.x; ++block) {
      typename Body::Shared shared{};
      for (int phase = 0; phase < Body::kPhases; ++phase) {
        for (unsigned thread = 0; thread < Body::kThreads; ++thread) {
          run(phase, {thread, block, blocks.x, time}, shared);
        }
      }
    }
  }
}

template <typename Body>
cudaError_t launch_blocks(dim3 blocks, cudaStream_t stream, const Body& body) {
  const auto* kernel = reinterpret_cast<const void*>(&block_entry<Body>);
  if (framelane_cuda_host_body != nullptr) {
    framelane_cuda_host_body(kernel, sizeof(Body), &run_blocks_on_host<Body>, dim3(Body::kThreads));
  }
  void* parameters[] = {const_cast<Body*>(&body)};
  return cudaLaunchKernel(kernel, blocks, dim3(Body::kThreads), parameters, 0, stream);
}

enum class Within { kAtomics, kTree, kShuffle };  // how the threads of a block add up

template <unsigned kBlock, Within kWithin, bool kVector>
struct Sum {
  static constexpr unsigned kThreads = kBlock;
  static constexpr int log2(unsigned n) { return n == 1 ? 0 : 1 + log2(n / 2); }
  static constexpr int kPhases = kWithin == Within::kAtomics ? 1
                                 : kWithin == Within::kTree  ? 2 + log2(kBlock)
                                                             : 2;
  struct Shared {
    float parts[kWithin == Within::kTree      ? kBlock
                : kWithin == Within::kShuffle ? (kBlock + kWarp - 1) / kWarp
                                              : 1];
  };

  const float* values;
  std::size_t count;
  float* sums;

  FRAMELANE_HD void operator()(int phase, BlockThread at, Shared& shared) const {
    if constexpr (kWithin == Within::kAtomics) {
      add(at, part(at));
    } else if constexpr (kWithin == Within::kTree) {
      if (phase == 0) {
        shared.parts[at.thread] = part(at);
      } else if (phase + 1 < kPhases) {
        const unsigned half = kBlock >> phase;
        if (at.thread < half) shared.parts[at.thread] += shared.parts[at.thread + half];
      } else if (at.thread == 0) {
        add(at, shared.parts[0]);
      }
    } else {
      if (phase == 0) {
        add_within_warp(at, part(at), shared);
      } else if (at.thread == 0) {
        float all = 0;
        for (const float one : shared.parts) all += one;
        add(at, all);
      }
    }
  }

 private:
  /// What one thread reads, in steps of the whole grid.
  FRAMELANE_HD float part(BlockThread at) const {
    const std::size_t first = std::size_t{at.block} * kBlock + at.thread;
    const std::size_t step = std::size_t{at.blocks} * kBlock;
    float result = 0;
    if constexpr (kVector) {
      const auto* fours = reinterpret_cast<const float4*>(values);
      for (std::size_t i = first; i < count / 4; i += step) {
        const float4 four = load(fours + i);
        result += (four.x + four.y) + (four.z + four.w);
      }
      const std::size_t rest = count / 4 * 4 + first;
      if (rest < count) result += values[rest];
    } else {
      for (std::size_t i = first; i < count; i += step) result += values[i];
    }
    return result;
  }
  /// Bypasses the first-level cache, which holds nothing of earlier launches. So one launch that
  /// reads the numbers many times reads as many launches would.
  FRAMELANE_HD static float4 load(const float4* four) {
#ifdef __CUDA_ARCH__
    return __ldcg(four);
#else
    return *four;
#endif
  }
  FRAMELANE_HD void add(BlockThread at, float value) const {
#ifdef __CUDA_ARCH__
    atomicAdd(sums + at.time, value);
#else
    sums[at.time] += value;  // the host has one thread at a time
#endif
  }
  FRAMELANE_HD static void add_within_warp(BlockThread at, float value, Shared& shared) {
    const unsigned lane = at.thread % kWarp;
#ifdef __CUDA_ARCH__
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      value += __shfl_down_sync(0xFFFFFFFF, value, distance);
    }
    if (lane == 0) shared.parts[at.thread / kWarp] = value;
#else
    float& all = shared.parts[at.thread / kWarp];
    all = lane == 0 ? value : all + value;
#endif
  }
};

constexpr unsigned kThreads = 256;
using BestSum = Sum<kThreads, Within::kShuffle, true>;

struct Nothing {
  static constexpr unsigned kThreads = BestSum::kThreads;
  static constexpr int kPhases = 1;
  struct Shared {};

  FRAMELANE_HD void operator()(int, BlockThread, Shared&) const {}
};

/// As many blocks as have something to do, up to a limit that gives each thread a few numbers of a
/// picture of 512x512.
unsigned blocks_for(std::size_t count) {
  constexpr std::size_t kMost = 64;
  return static_cast<unsigned>(std::clamp<std::size_t>(count / kThreads, 1, kMost));
}

}  // namespace

const char* name_of(SumWay way) {
  switch (way) {
    case SumWay::kOneThread:
      return "one thread";
    case SumWay::kOneBlock:
      return "one block, atomics";
    case SumWay::kManyBlocks:
      return "many blocks, atomics";
    case SumWay::kTree:
      return "tree in shared memory";
    case SumWay::kShuffle:
      return "warp shuffles";
    case SumWay::kVectorLoads:
      break;
  }
  return "warp shuffles, vector loads";
}

cudaError_t enqueue_sum(SumWay way, const float* values, std::size_t count, float* sum,
                        cudaStream_t stream) {
  switch (way) {
    case SumWay::kOneThread:
      return launch_blocks(1, stream, Sum<1, Within::kAtomics, false>{values, count, sum});
    case SumWay::kOneBlock:
      return launch_blocks(1, stream, Sum<1024, Within::kAtomics, false>{values, count, sum});
    case SumWay::kManyBlocks:
      return launch_blocks(blocks_for(count), stream,
                           Sum<kThreads, Within::kAtomics, false>{values, count, sum});
    case SumWay::kTree:
      return launch_blocks(blocks_for(count), stream,
                           Sum<kThreads, Within::kTree, false>{values, count, sum});
    case SumWay::kShuffle:
      return launch_blocks(blocks_for(count), stream,
                           Sum<kThreads, Within::kShuffle, false>{values, count, sum});
    case SumWay::kVectorLoads:
      break;
  }
  return launch_blocks(blocks_for(count), stream, BestSum{values, count, sum});
}

cudaError_t enqueue_sums(const float* values, std::size_t count, float* sums, int times,
                         cudaStream_t stream) {
  return launch_blocks(dim3(blocks_for(count), static_cast<unsigned>(times)), stream,
                       BestSum{values, count, sums});
}

cudaError_t enqueue_nothing(std::size_t count, cudaStream_t stream) {
  return launch_blocks(blocks_for(count), stream, Nothing{});
}

}  // namespace framelane::bench
