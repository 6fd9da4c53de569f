#pragma once

#include <cstring>

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/samples.cuh"

// Where ScaleTile (scale_tile.cuh) has its numbers from. A thread has four columns. It begins to
// copy a row of them to its place in shared memory (load), and later makes them numbers of the
// lines that are filtered (values).
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

/// The channels of one frame.
struct TileFrame {
  Samples2d<const std::uint8_t> from[3];  // of the part that is scaled
  Samples2d<std::uint8_t> to[3];          // of the whole target
};

/// Pixels of packed R'G'B'. Luma is line 0, and lines 1 and 2 are the differences of the pixel's
/// first and third colour byte to it, each with a factor. With kFast, pixels have four bytes, rows
/// are aligned to 16 bytes, and the width is a multiple of 4.
template <bool kHasChroma, bool kFast>
struct RgbTileSource {
  static constexpr int kLines = kHasChroma ? 3 : 1;
  static constexpr bool kSeparate = false;

  int order[3];           // the channels in the order of memory
  int alpha;              // bytes before the first colour byte of a pixel
  bool words;             // pixels have four bytes, and are aligned
  float luma[3];          // factors of the bytes
  float middle;           // is taken off luma
  float difference[2];    // and of the first and third one in the other lines
  unsigned selectors[3];  // of the bytes in a word

  /// Four pixels. What is no colour has any value.
  struct alignas(16) Raw {
    std::uint32_t words[4];
  };
  /// Where a thread's pixels are.
  struct Place {
    const std::uint8_t* pixels;
    int pitch, x;
  };

  /// (Columns beyond the picture have no weight, and any value.)
  template <int kFirst>
  FRAMELANE_HD Place place(const TileFrame& frame, int x) const {
    const Samples2d<const std::uint8_t>& first = frame.from[order[0]];
    if (kFast) x = at_most(x, first.width - 4);
    return {first.data - alpha + 4 * static_cast<std::ptrdiff_t>(x), static_cast<int>(first.pitch),
            x};
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void load(const TileFrame& frame, const Place& place, int y, Raw& to) const {
    const std::uint8_t* const pixels = row_at(place.pixels, y, place.pitch);
    if constexpr (kFast) {
      copy_async<16>(&to, pixels);
    } else {
      FRAMELANE_UNROLL
      for (int c = 0; c < 4; ++c) {
        const int column = at_most(place.x + c, frame.from[0].width - 1);
        if (words) {
          copy_async<4>(&to.words[c], pixels + 4 * static_cast<std::ptrdiff_t>(column - place.x));
        } else {
          to.words[c] = pixel(frame, column, y);
        }
      }
    }
  }

  FRAMELANE_HD std::uint32_t pixel(const TileFrame& frame, int x, int y) const {
    const Samples2d<const std::uint8_t>& first = frame.from[order[0]];
    if (words) {
      const std::uint8_t* const row = row_at(first.data - alpha, y, static_cast<int>(first.pitch));
      return cuda::load<std::uint32_t>(row + 4 * static_cast<std::ptrdiff_t>(x));
    }
    const auto byte = [&](int k) {
      return static_cast<std::uint32_t>(frame.from[order[k]].at(x, y)) << (8 * (k + alpha));
    };
    return byte(0) | byte(1) | byte(2);
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void values(const Place& /*place*/, const Raw& raw,
                           float (&values)[kLines][4]) const {
    FRAMELANE_UNROLL
    for (int c = 0; c < 4; ++c) {
      const float first = as_float(byte_at(raw.words[c], selectors[0]));
      const float second = as_float(byte_at(raw.words[c], selectors[1]));
      const float third = as_float(byte_at(raw.words[c], selectors[2]));
      const float weighted = luma[0] * first + luma[1] * second + luma[2] * third;
      values[0][c] = weighted - middle;
      if constexpr (kHasChroma) {
        values[1][c] = difference[0] * first - weighted;
        values[2][c] = difference[1] * third - weighted;
      }
    }
  }
};

/// How a row's samples lie: four in a word, of U and V side by side in two words; or in any way.
enum class PlaneWay { kFour, kPairs, kAny };

/// Channels that are filtered each for itself: Y, and U with V. `kWay`: of chroma; if it is not
/// kAny, luma has kFour, all rows are aligned, and widths are multiples of 4.
template <PlaneWay kWay>
struct PlaneTileSource {
  static constexpr int kLines = 2;
  static constexpr bool kSeparate = true;

  PlaneWay ways[2];  // of luma and of chroma, where kWay is kAny

  /// Four samples of each channel, as they lie in memory.
  struct alignas(8) Raw {
    std::uint32_t words[2];
  };
  /// Where a thread's samples are.
  struct Place {
    const std::uint8_t* samples[2];
    int pitches[2];
    int x;
    PlaneWay way;
  };

  /// (Columns beyond the picture have no weight, and any value.)
  template <int kFirst>
  FRAMELANE_HD Place place(const TileFrame& frame, int x) const {
    const Samples2d<const std::uint8_t>& plane = frame.from[kFirst];
    const Samples2d<const std::uint8_t>& other = frame.from[kFirst == 0 ? 0 : 2];
    PlaneWay way = kFirst == 0 ? PlaneWay::kFour : kWay;
    if (kWay == PlaneWay::kAny) {
      way = x + 4 <= plane.width ? ways[kFirst] : PlaneWay::kAny;
    } else {
      x = at_most(x, plane.width - 4);
    }
    const std::ptrdiff_t bytes = std::int64_t{x} * plane.step;
    return {{plane.data + bytes, other.data + bytes},
            {static_cast<int>(plane.pitch), static_cast<int>(other.pitch)},
            x,
            way};
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void load(const TileFrame& frame, const Place& place, int y, Raw& to) const {
    if (way<kFirst>(place) == PlaneWay::kPairs) {
      copy_async<8>(&to, row_at(place.samples[0], y, place.pitches[0]));
      return;
    }
    FRAMELANE_UNROLL
    for (int k = 0; k < kEnd - kFirst; ++k) {
      if (way<kFirst>(place) == PlaneWay::kFour) {
        copy_async<4>(&to.words[k], row_at(place.samples[k], y, place.pitches[k]));
        continue;
      }
      std::uint32_t word = 0;
      FRAMELANE_UNROLL
      for (int c = 0; c < 4; ++c) {
        const int column = at_most(place.x + c, frame.from[kFirst].width - 1);
        word |= static_cast<std::uint32_t>(frame.from[kFirst + k].at(column, y)) << (8 * c);
      }
      to.words[k] = word;
    }
  }

  template <int kFirst, int kEnd>
  FRAMELANE_HD void values(const Place& place, const Raw& raw, float (&values)[kLines][4]) const {
    std::uint32_t words[2] = {raw.words[0], raw.words[1]};
    if (way<kFirst>(place) == PlaneWay::kPairs) {
      words[0] = every_other<0>(raw.words[0], raw.words[1]);
      words[1] = every_other<1>(raw.words[0], raw.words[1]);
    }
    FRAMELANE_UNROLL
    for (int k = 0; k < kEnd - kFirst; ++k) {
      values[k][0] = as_float(bytes_at<0x4440>(words[k], 0));
      values[k][1] = as_float(bytes_at<0x4441>(words[k], 0));
      values[k][2] = as_float(bytes_at<0x4442>(words[k], 0));
      values[k][3] = as_float(bytes_at<0x4443>(words[k], 0));
    }
  }

 private:
  template <int kFirst>
  FRAMELANE_HD static PlaneWay way(const Place& place) {
    return kWay == PlaneWay::kAny ? place.way : kFirst == 0 ? PlaneWay::kFour : kWay;
  }
};

}  // namespace framelane::cuda
