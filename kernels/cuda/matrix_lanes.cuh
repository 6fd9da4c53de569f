#pragma once

#include <cstdint>

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/matrix_tables.hpp"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/samples.cuh"
#include "kernels/cuda/scale_source.cuh"

// What the lanes of a warp do in ScaleMatrix (scale_matrix.cuh): how they read a window of the
// source's columns, filter it down, and multiply the sums with weights across. For GPUs only.

namespace framelane::cuda {

/// Columns of the source in a window.
inline constexpr int kMatrixWindow = 2 * kMatrixHalf;

#ifdef __CUDA_ARCH__
/// What lane `lane` has of a table.
template <typename Words>
__device__ __forceinline__ Words load_words(const std::uint32_t* table, int lane) {
  return reinterpret_cast<const Words*>(table)[lane];
}

/// What a lane has of sums down, byte by byte (the lowest one first; the last one is signed), in
/// the order of mma.cuh's `left`.
struct MatrixSums {
  std::uint32_t window[3][4];    // of both halves of the window
  std::uint32_t straddle[3][4];  // of the half before it, and of its first one
  std::uint32_t before[3][2];    // of the half before that; for wide tables
};

/// Where a lane has its samples from. Lane 4 g + t has, of each half of the rows, rows 4 t to 4 t
/// + 3 of the four columns from 2 g on, if g is even, or from 16 + 2 (g - 1) on, if it is odd.
template <int kHalves>
struct MatrixColumns {
  const Samples2d<const std::uint8_t>& plane;
  const std::uint8_t* first_row;
  int pitch, offset, channel;
  PlaneWay way;

  __device__ __forceinline__ MatrixColumns(const Samples2d<const std::uint8_t>& from, int row,
                                           int origin, PlaneWay how, int of_channel, int lane)
      : plane(from),
        first_row(row_at(from.data, row + 4 * (lane % 4), static_cast<int>(from.pitch))),
        pitch(static_cast<int>(from.pitch)),
        offset(lane / 8 * 4 + lane / 4 % 2 * kMatrixHalf - origin),
        channel(of_channel),
        way(how) {}

  /// Four samples of each row, or four pairs. (Columns beyond the picture have no weight, and any
  /// value.)
  __device__ __forceinline__ void load(int window, uint2 (&raw)[4 * kHalves]) const {
    const int x = window * kMatrixWindow + offset;
    const bool words = plane.width % 4 == 0 || (window + 1) * kMatrixWindow <= plane.width;
    const int column = at_least(at_most(x, (plane.width & ~3) - 4), 0);
    if (words && way == PlaneWay::kFour) {
      const std::uint8_t* const first = first_row + column;
      FRAMELANE_UNROLL
      for (int i = 0; i < 4 * kHalves; ++i) {
        raw[i].x = cuda::load<std::uint32_t>(row_at(first, i / 4 * kMatrixHalf + i % 4, pitch));
      }
    } else if (words && way == PlaneWay::kPairs) {
      const std::uint8_t* const first = first_row + 2 * column;
      FRAMELANE_UNROLL
      for (int i = 0; i < 4 * kHalves; ++i) {
        raw[i] = cuda::load<uint2>(row_at(first, i / 4 * kMatrixHalf + i % 4, pitch));
      }
    } else {
      FRAMELANE_UNROLL
      for (int i = 0; i < 4 * kHalves; ++i) raw[i] = {0, 0};
      FRAMELANE_UNROLL
      for (int c = 0; c < 4; ++c) {
        const int place = at_least(at_most(x + c, plane.width - 1), 0) * plane.step;
        FRAMELANE_UNROLL
        for (int i = 0; i < 4 * kHalves; ++i) {
          const std::uint8_t* const sample =
              row_at(first_row, i / 4 * kMatrixHalf + i % 4, pitch) + place;
          if (way == PlaneWay::kPairs) {
            const std::uint32_t pair = sample[0] | static_cast<std::uint32_t>(sample[1]) << 8;
            (c < 2 ? raw[i].x : raw[i].y) |= pair << (16 * (c % 2));
          } else {
            raw[i].x |= static_cast<std::uint32_t>(sample[0]) << (8 * c);
          }
        }
      }
    }
  }

  /// Four rows of four columns become words of columns, whose samples are from -128 to 127.
  __device__ __forceinline__ void transpose(const uint2* rows, std::uint32_t (&right)[4][kHalves],
                                            int half) const {
    constexpr std::uint32_t kSigns = 0x80808080;
    std::uint32_t a, b, c, d;  // columns 0 and 1 of two rows each, and columns 2 and 3
    if (way == PlaneWay::kPairs) {
      const unsigned bytes = channel == 1 ? 0x6240 : 0x7351;
      a = __byte_perm(rows[0].x, rows[1].x, bytes);
      b = __byte_perm(rows[2].x, rows[3].x, bytes);
      c = __byte_perm(rows[0].y, rows[1].y, bytes);
      d = __byte_perm(rows[2].y, rows[3].y, bytes);
    } else {
      a = __byte_perm(rows[0].x, rows[1].x, 0x5140);
      b = __byte_perm(rows[2].x, rows[3].x, 0x5140);
      c = __byte_perm(rows[0].x, rows[1].x, 0x7362);
      d = __byte_perm(rows[2].x, rows[3].x, 0x7362);
    }
    right[0][half] = __byte_perm(a, b, 0x5410) ^ kSigns;
    right[1][half] = __byte_perm(a, b, 0x7632) ^ kSigns;
    right[2][half] = __byte_perm(c, d, 0x5410) ^ kSigns;
    right[3][half] = __byte_perm(c, d, 0x7632) ^ kSigns;
  }
};

/// Filters a window down. `down` are the weights: of each byte, the words of the halves. Product i
/// is of the columns that lanes have in byte i of their words. So a lane has the sums of columns 4
/// t + i and 16 + 4 t + i, which are what it needs of them in the product across.
template <int kHalves>
__device__ __forceinline__ void add_down(const std::uint32_t (&down)[3][2 * kHalves],
                                         const std::uint32_t (&right)[4][kHalves],
                                         MatrixSums& sums) {
  std::uint32_t whole[4][4];
  FRAMELANE_UNROLL
  for (int i = 0; i < 4; ++i) {
    std::int32_t parts[3][4] = {};
    FRAMELANE_UNROLL
    for (int byte = 0; byte < 3; ++byte) {
      const std::uint32_t(&left)[2 * kHalves] = down[byte];
      FRAMELANE_UNROLL
      for (int h = 0; h + 1 < kHalves; h += 2) {
        multiply_signed(parts[byte],
                        {left[2 * h], left[2 * h + 1], left[2 * h + 2], left[2 * h + 3]},
                        {right[i][h], right[i][h + 1]}, parts[byte]);
      }
      if constexpr (kHalves % 2 == 1) {
        multiply_signed(parts[byte], {left[2 * kHalves - 2], left[2 * kHalves - 1]},
                        right[i][kHalves - 1], parts[byte]);
      }
    }
    FRAMELANE_UNROLL
    for (int c = 0; c < 4; ++c) {
      whole[c][i] = static_cast<std::uint32_t>(parts[0][c]) +
                    (static_cast<std::uint32_t>(parts[1][c]) << 8) +
                    (static_cast<std::uint32_t>(parts[2][c]) << 16);
    }
  }
  FRAMELANE_UNROLL
  for (int c = 0; c < 4; ++c) {
    const std::uint32_t(&four)[4] = whole[c];
    const int place = c / 2 + c % 2 * 2;  // in the order of `left`
    const std::uint32_t low = __byte_perm(four[0], four[1], 0x6251);
    const std::uint32_t high = __byte_perm(four[2], four[3], 0x6251);
    sums.window[0][place] = __byte_perm(low, high, 0x5410);
    sums.window[1][place] = __byte_perm(low, high, 0x7632);
    sums.window[2][place] = __byte_perm(__byte_perm(four[0], four[1], 0x0073),
                                        __byte_perm(four[2], four[3], 0x0073), 0x5410);
    if (c % 2 != 0) continue;
    FRAMELANE_UNROLL
    for (int byte = 0; byte < 3; ++byte) {
      sums.straddle[byte][2 + place] = sums.window[byte][place];
    }
  }
}

/// The parts of sums across that are multiples of 2^8, 2^16, 2^24 and 2^32.
struct MatrixProducts {
  std::int32_t by_8[4], by_16[4], by_24[4], by_32[4];
};

/// Adds the product of sums down and weights, of which w0 to w2 are the bytes.
template <int kWords, typename Right>
__device__ __forceinline__ void multiply(const std::uint32_t (&left)[3][kWords], const Right& w0,
                                         const Right& w1, const Right& w2, MatrixProducts& to) {
  multiply_signed(to.by_16, left[2], w0, to.by_16);
  multiply_signed(to.by_24, left[2], w1, to.by_24);
  multiply_signed(to.by_32, left[2], w2, to.by_32);
  multiply_unsigned(to.by_16, left[1], w1, to.by_16);
  multiply_unsigned(to.by_24, left[1], w2, to.by_24);
  multiply_unsigned(to.by_8, left[1], w0, to.by_8);
  multiply_unsigned(to.by_16, left[0], w2, to.by_16);
  multiply_unsigned(to.by_8, left[0], w1, to.by_8);
}
#endif

}  // namespace framelane::cuda
