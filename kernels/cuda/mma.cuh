#pragma once

#include <cstdint>

#include "kernels/cuda/kernel.hpp"

// Products of matrices of bytes, which a warp makes together: 16 rows of 32 bytes times 32 rows of
// 8 bytes, added to 16 rows of 8 whole numbers. With lane 4 g + t (g from 0 to 7, t from 0 to 3),
// the four bytes of a word one behind the other:
//   left[0], left[1]      row g and row g + 8, from column 4 t on
//   left[2], left[3]      the same rows, from column 16 + 4 t on
//   right[0], right[1]    column g, from row 4 t and from row 16 + 4 t on
//   sums[0], sums[1]      row g, columns 2 t and 2 t + 1
//   sums[2], sums[3]      row g + 8, the same columns
// (PTX ISA, "Matrix Fragments for mma.m16n8k32".) Sums wrap around. For GPUs only.

namespace framelane::cuda {

#ifdef __CUDA_ARCH__
/// sums = left * right + to, where bytes of `left` are signed or not, and those of `right` are
/// signed.
#if __CUDA_ARCH__ >= 800
#define FRAMELANE_MULTIPLY_BYTES(name, types)                                                      \
  __device__ __forceinline__ void name(std::int32_t(&sums)[4], const std::uint32_t(&left)[4],      \
                                       const std::uint32_t(&right)[2],                             \
                                       const std::int32_t(&to)[4]) {                               \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." types                                             \
        ".s32 "                                                                                    \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                      \
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])                               \
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]),    \
          "r"(to[0]), "r"(to[1]), "r"(to[2]), "r"(to[3]));                                         \
  }                                                                                                \
  __device__ __forceinline__ void name(std::int32_t(&sums)[4], const std::uint32_t(&left)[2],      \
                                       std::uint32_t right, const std::int32_t(&to)[4]) {          \
    asm("mma.sync.aligned.m16n8k16.row.col.s32." types                                             \
        ".s32 "                                                                                    \
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"                                     \
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])                               \
        : "r"(left[0]), "r"(left[1]), "r"(right), "r"(to[0]), "r"(to[1]), "r"(to[2]), "r"(to[3])); \
  }
#else
// Turing makes eight rows and 16 samples at a time.
#define FRAMELANE_MULTIPLY_BYTES(name, types)                                                  \
  __device__ __forceinline__ void name(std::int32_t(&sums)[4], const std::uint32_t(&left)[2],  \
                                       std::uint32_t right, const std::int32_t(&to)[4]) {      \
    FRAMELANE_UNROLL                                                                           \
    for (int i = 0; i < 2; ++i) {                                                              \
      asm("mma.sync.aligned.m8n8k16.row.col.s32." types ".s32 {%0, %1}, {%2}, {%3}, {%4, %5};" \
          : "=r"(sums[2 * i]), "=r"(sums[2 * i + 1])                                           \
          : "r"(left[i]), "r"(right), "r"(to[2 * i]), "r"(to[2 * i + 1]));                     \
    }                                                                                          \
  }                                                                                            \
  __device__ __forceinline__ void name(std::int32_t(&sums)[4], const std::uint32_t(&left)[4],  \
                                       const std::uint32_t(&right)[2],                         \
                                       const std::int32_t(&to)[4]) {                           \
    std::int32_t half[4];                                                                      \
    name(half, {left[0], left[1]}, right[0], to);                                              \
    name(sums, {left[2], left[3]}, right[1], half);                                            \
  }
#endif
FRAMELANE_MULTIPLY_BYTES(multiply_unsigned, "u8.s8")
FRAMELANE_MULTIPLY_BYTES(multiply_signed, "s8.s8")
#undef FRAMELANE_MULTIPLY_BYTES
#endif

}  // namespace framelane::cuda
