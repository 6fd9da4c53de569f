#pragma once

#include <cuda_runtime.h>

#include <cassert>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/cuda/kernel.hpp"

// Kernels whose threads work together. A block works in turns of two phases: what threads leave in
// shared memory in the first, all of them may read in the second. What begin() leaves there, other
// threads may read after the first turn's first phase; without a turn they may not. Such a body
// has, besides its parameters,
//
//   struct State;                                          what a thread keeps from turn to turn
//   static constexpr int kBlocks;                          blocks that a multiprocessor has at once
//   void begin(TileThread, State&, float* shared) const;
//   int turns(const State&) const;                         the same for all threads of a block
//   void fill(TileThread, State&, float* shared) const;    the first phase
//   void use(TileThread, State&, float* shared) const;     the second phase
//   void finish(TileThread, State&, float* shared) const;  after all turns
//
// The host runs a phase for all threads of a block before it runs the next one.

namespace framelane::cuda {

/// A thread of a block, and the block's place in the grid.
struct TileThread {
  unsigned thread;
  unsigned x, y, z;
};

/// What a block may have without asking CUDA for more.
inline constexpr std::size_t kMostSharedBytes = std::size_t{48} * 1024;

template <typename Body>
struct Tiles {
  Body body;
  std::size_t shared_bytes;
};

template <typename Body>
__global__ void __launch_bounds__(kBlockThreads, Body::kBlocks)
    tile_entry(const __grid_constant__ Tiles<Body> tiles) {
  extern __shared__ float4 tile_memory[];
  float* const shared = reinterpret_cast<float*>(tile_memory);
  const TileThread thread{threadIdx.x, blockIdx.x, blockIdx.y, blockIdx.z};
  typename Body::State state;
  tiles.body.begin(thread, state, shared);
  const int turns = tiles.body.turns(state);
  for (int turn = 0; turn < turns; ++turn) {
    tiles.body.fill(thread, state, shared);
    __syncthreads();
    tiles.body.use(thread, state, shared);
    __syncthreads();
  }
  tiles.body.finish(thread, state, shared);
}

template <typename Body>
void run_tiles_on_host(const void* tiles, dim3 blocks) {
  const auto& [body, shared_bytes] = *static_cast<const Tiles<Body>*>(tiles);
  std::vector<float4> memory((shared_bytes + sizeof(float4) - 1) / sizeof(float4));
  float* const shared = reinterpret_cast<float*>(memory.data());
  std::vector<typename Body::State> states(kBlockThreads);
  for (unsigned block = 0; block < blocks.x * blocks.y * blocks.z; ++block) {
    std::memset(memory.data(), 0xFF, memory.size() * sizeof(float4));  // any value
    TileThread at{0, block % blocks.x, block / blocks.x % blocks.y, block / blocks.x / blocks.y};
    const auto each = [&](auto phase) {
      for (at.thread = 0; at.thread < kBlockThreads; ++at.thread) phase(states[at.thread]);
    };
    each([&](auto& state) { body.begin(at, state, shared); });
    const int turns = body.turns(states.front());
    for (int turn = 0; turn < turns; ++turn) {
      each([&](auto& state) { body.fill(at, state, shared); });
      each([&](auto& state) { body.use(at, state, shared); });
    }
    each([&](auto& state) { body.finish(at, state, shared); });
  }
}

/// Queues `body` on `stream` for so many blocks, each with `shared_bytes` of shared memory. Returns
/// as launch() does.
template <typename Body>
[[nodiscard]] cudaError_t launch_tiles(dim3 blocks, std::size_t shared_bytes, cudaStream_t stream,
                                       const Body& body) {
  Tiles<Body> tiles{body, shared_bytes};
  static_assert(std::is_trivially_copyable_v<Tiles<Body>> && sizeof tiles <= 4096);
  assert(shared_bytes <= kMostSharedBytes);
  const auto* kernel = reinterpret_cast<const void*>(&tile_entry<Body>);
  if (framelane_cuda_host_body != nullptr) {
    framelane_cuda_host_body(kernel, sizeof tiles, &run_tiles_on_host<Body>, dim3(kBlockThreads));
  }
  void* parameters[] = {&tiles};
  return cudaLaunchKernel(kernel, blocks, dim3(kBlockThreads), parameters, shared_bytes, stream);
}

/// As load(), for what launch_tiles() launches.
template <typename Body>
[[nodiscard]] cudaError_t load_tiles() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&tile_entry<Body>));
}

}  // namespace framelane::cuda
