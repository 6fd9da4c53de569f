#pragma once

#include <cstring>

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/samples.cuh"

// Where ScaleTile (scale_tile.cuh) has its numbers from. A thread has four columns. It reads a row
// of them (load), and later makes them numbers of the lines that are filtered (values).
//
// A byte becomes a float without a conversion: the bits of a whole number below 2^24 are a float of
// that number times 2^-149, and weights that are 2^100 times too large make up for it. So all sums
// are too small by kSumUnit. (Products of such floats are exact, and as fast as others on a GPU.)

namespace framelane::cuda {

inline constexpr float kByteWeight = 0x1p100F;
inline constexpr double kSumUnit = 0x1p-49;

FRAMELANE_HD float as_float(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
#endif
}

/// Pixels of packed R'G'B'. Luma is line 0, and lines 1 and 2 are the differences of the pixel's
/// first and third colour byte to it, each with a factor.
template <bool kHasChroma>
struct RgbTileSource {
  static constexpr int kLines = kHasChroma ? 3 : 1;
  static constexpr bool kSeparate = false;

  enum class Way { kFour, kWords, kBytes };

  Samples2d<const std::uint8_t> bytes[3];  // the colour bytes in the order of memory
  const std::uint8_t* pixels;              // of 4 bytes
  int pitch;
  Way way;
  bool alpha_first;
  float luma[3];        // factors of the bytes
  float middle;         // is taken off luma
  float difference[2];  // and of the first and third one in the other lines

  /// Four pixels: colours in the low 24 bits, any value in the others.
  struct Raw {
    std::uint32_t words[4];
  };
  /// Where a thread's pixels are.
  struct Place {
    const std::uint8_t* pixels;
    int x;
    bool is_four;
  };

  template <int kFirst>
  FRAMELANE_HD Place place(int x) const {
    return {pixels + 4 * static_cast<std::ptrdiff_t>(x), x,
            way == Way::kFour && x + 4 <= bytes[0].width};
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void load(const Place& place, int y, Raw& raw) const {
    if (place.is_four) {
      const auto four = cuda::load<uint4>(place.pixels + std::int64_t{y} * pitch);
      raw = {{four.x, four.y, four.z, four.w}};
      return;
    }
    FRAMELANE_UNROLL
    for (int c = 0; c < 4; ++c) {
      const int column = at_most(place.x + c, bytes[0].width - 1);
      if (way == Way::kBytes) {
        const auto byte = [&](int k) {
          return static_cast<std::uint32_t>(bytes[k].at(column, y)) << (alpha_first ? 8 : 0);
        };
        raw.words[c] = byte(0) | byte(1) << 8 | byte(2) << 16;
      } else {
        raw.words[c] = cuda::load<std::uint32_t>(pixels + std::int64_t{y} * pitch +
                                                 4 * static_cast<std::ptrdiff_t>(column));
      }
    }
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void values(const Raw& raw, float (&values)[kLines][4]) const {
    FRAMELANE_UNROLL
    for (int c = 0; c < 4; ++c) {
      const std::uint32_t word = alpha_first ? raw.words[c] >> 8 : raw.words[c];
      const float first = as_float(word & 0xFF);
      const float second = as_float(word & 0xFF00);
      const float third = as_float(word & 0xFF0000);
      const float weighted = luma[0] * first + luma[1] * second + luma[2] * third;
      values[0][c] = weighted - middle;
      if constexpr (kHasChroma) {
        values[1][c] = difference[0] * first - weighted;
        values[2][c] = difference[1] * third - weighted;
      }
    }
  }
};

/// Channels that are filtered each for itself: Y, and U with V.
struct PlaneTileSource {
  static constexpr int kLines = 2;
  static constexpr bool kSeparate = true;

  enum class Way { kFour, kPairs, kBytes };

  Samples2d<const std::uint8_t> planes[3];
  int pitches[3];
  Way ways[2];  // of luma and of chroma

  /// Four samples of each channel.
  struct Raw {
    std::uint32_t words[2];
  };
  /// Where a thread's samples are.
  struct Place {
    const std::uint8_t* samples[2];
    int x;
    Way way;
  };

  template <int kFirst>
  FRAMELANE_HD Place place(int x) const {
    const Samples2d<const std::uint8_t>& plane = planes[kFirst];
    const std::ptrdiff_t bytes = std::int64_t{x} * plane.step;
    return {{plane.data + bytes, planes[kFirst == 0 ? 0 : 2].data + bytes},
            x,
            x + 4 <= plane.width ? ways[kFirst] : Way::kBytes};
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void load(const Place& place, int y, Raw& raw) const {
    if (place.way == Way::kPairs) {
      const auto pairs = cuda::load<uint2>(place.samples[0] + std::int64_t{y} * pitches[kFirst]);
      raw.words[0] = every_other<0>(pairs.x, pairs.y);
      raw.words[1] = every_other<1>(pairs.x, pairs.y);
      return;
    }
    FRAMELANE_UNROLL
    for (int k = 0; k < kEnd - kFirst; ++k) {
      if (place.way == Way::kFour) {
        raw.words[k] =
            cuda::load<std::uint32_t>(place.samples[k] + std::int64_t{y} * pitches[kFirst + k]);
        continue;
      }
      std::uint32_t word = 0;
      FRAMELANE_UNROLL
      for (int c = 0; c < 4; ++c) {
        const int column = at_most(place.x + c, planes[kFirst].width - 1);
        word |= static_cast<std::uint32_t>(planes[kFirst + k].at(column, y)) << (8 * c);
      }
      raw.words[k] = word;
    }
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void values(const Raw& raw, float (&values)[kLines][4]) const {
    FRAMELANE_UNROLL
    for (int k = 0; k < kEnd - kFirst; ++k) {
      values[k][0] = as_float(bytes_at<0x4440>(raw.words[k], 0));
      values[k][1] = as_float(bytes_at<0x4441>(raw.words[k], 0));
      values[k][2] = as_float(bytes_at<0x4442>(raw.words[k], 0));
      values[k][3] = as_float(bytes_at<0x4443>(raw.words[k], 0));
    }
  }
};

}  // namespace framelane::cuda
