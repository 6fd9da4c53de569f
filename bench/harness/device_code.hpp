// Code that the suites run both in kernels and on the host.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define FRAMELANE_BENCH_HD __host__ __device__ __forceinline__
#else
#define FRAMELANE_BENCH_HD inline
#endif

namespace framelane::bench {

/// One pixel of packed YUV 4:4:4.
struct Yuv {
  std::uint8_t y, u, v;
};

/// R'G'B' to BT.601 in limited range with coefficients of eight bits, rounded down: the formula of
/// textbooks, and of the experiment that `convert` repeats. framelane itself converts exactly.
FRAMELANE_BENCH_HD Yuv classic_yuv(int red, int green, int blue) {
  return {static_cast<std::uint8_t>(((66 * red + 129 * green + 25 * blue) >> 8) + 16),
          static_cast<std::uint8_t>(((-38 * red - 74 * green + 112 * blue) >> 8) + 128),
          static_cast<std::uint8_t>(((112 * red - 94 * green - 18 * blue) >> 8) + 128)};
}

/// `steps` steps of Marsaglia's xorshift (13, 17, 5): work that a compiler cannot shorten.
FRAMELANE_BENCH_HD std::uint32_t mix_word(std::uint32_t word, int steps) {
  for (int i = 0; i < steps; ++i) {
    word ^= word << 13;
    word ^= word >> 17;
    word ^= word << 5;
  }
  return word;
}

}  // namespace framelane::bench
