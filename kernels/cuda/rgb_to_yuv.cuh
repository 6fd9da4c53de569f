#pragma once

#include <vector_types.h>

#include "kernels/color_spec.hpp"
#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/counting.cuh"

// R'G'B' in full range to YUV, at the speed of memory. A thread works on groups of four pixels in
// two rows. It needs one 16-byte load per row (three of 4 bytes for 24-bit pixels), and a plain
// load for the column to the left, which is in the first-level cache. Measured on an H100, loads
// with a streaming hint are slower, and so is a warp shuffle for the neighbouring column.

namespace framelane::cuda {

enum class RgbLayout { kColorFirst, kAlphaFirst, k24Bit };
enum class YuvLayout { kI420, kNv12, kI422, kI444, kPacked444, kGray };

inline constexpr int kQuad = 4;

struct RgbToYuvFrame {
  const std::uint8_t* source;
  std::ptrdiff_t source_pitch;
  std::uint8_t* planes[3];
  std::ptrdiff_t pitches[3];
};

/// Four neighbouring pixels. The low 24 bits are the three colour bytes; the high byte has any
/// value.
struct Quad {
  std::uint32_t pixels[kQuad];
};

/// Weighted sums of pixels: of the first and third colour byte in the low and high half of `outer`,
/// of the second in `inner`. The weights used here add up to 16 at most, so that the halves do not
/// overlap.
struct Sums {
  std::uint32_t outer, inner;
};

FRAMELANE_HD Sums split(std::uint32_t pixel) { return {pixel & 0x00FF00FF, pixel >> 8 & 0xFF}; }
FRAMELANE_HD Sums operator+(Sums a, Sums b) { return {a.outer + b.outer, a.inner + b.inner}; }
FRAMELANE_HD Sums twice(Sums a) { return a + a; }

template <RgbLayout kLayout>
struct RgbRow {
  static constexpr int kPixelBytes = kLayout == RgbLayout::k24Bit ? 3 : 4;
  static constexpr int kAlignment = kLayout == RgbLayout::k24Bit ? 4 : 16;

  const std::uint8_t* data;

  /// Pixels x to x + 3, of which `count` exist: the last one is repeated for the others.
  FRAMELANE_HD Quad quad(int x, int count) const {
    if (count < kQuad) {
      return {{pixel(x), pixel(x + at_most(1, count - 1)), pixel(x + at_most(2, count - 1)),
               pixel(x + count - 1)}};
    }
    const std::uint8_t* at = data + x * kPixelBytes;
    if constexpr (kLayout == RgbLayout::k24Bit) {
      const auto a = load<std::uint32_t>(at);
      const auto b = load<std::uint32_t>(at + 4);
      const auto c = load<std::uint32_t>(at + 8);
      return {{a, funnel(a, b, 24), funnel(b, c, 16), c >> 8}};
    } else {
      const auto four = load<uint4>(at);
      return {{color(four.x), color(four.y), color(four.z), color(four.w)}};
    }
  }

  /// Pixel x - 1. x > 0 and is the begin of a quad.
  FRAMELANE_HD std::uint32_t left_of(int x) const {
    const auto word = load<std::uint32_t>(data + x * kPixelBytes - 4);
    return kLayout == RgbLayout::kColorFirst ? word : word >> 8;
  }

 private:
  FRAMELANE_HD static std::uint32_t color(std::uint32_t pixel) {
    return kLayout == RgbLayout::kAlphaFirst ? pixel >> 8 : pixel;
  }
  FRAMELANE_HD std::uint32_t pixel(int x) const {
    const std::uint8_t* at = data + x * kPixelBytes;
    if constexpr (kLayout == RgbLayout::k24Bit) {
      return static_cast<std::uint32_t>(at[0] | at[1] << 8 | at[2] << 16);
    } else {
      return color(load<std::uint32_t>(at));
    }
  }
};

template <RgbLayout kLayout, YuvLayout kTarget, Siting kSiting, int kFrames>
struct RgbToYuv {
  static constexpr bool kHalfWidth =
      kTarget == YuvLayout::kI420 || kTarget == YuvLayout::kNv12 || kTarget == YuvLayout::kI422;
  static constexpr bool kHalfHeight = kTarget == YuvLayout::kI420 || kTarget == YuvLayout::kNv12;
  static constexpr bool kCositedAcross = kHalfWidth && kSiting != Siting::kCenter;
  static constexpr bool kCositedDown = kHalfHeight && kSiting == Siting::kTopLeft;
  /// The sum of the chroma weights.
  static constexpr int kChromaScale = (!kHalfWidth      ? 1
                                       : kCositedAcross ? 4
                                                        : 2) *
                                      (!kHalfHeight   ? 1
                                       : kCositedDown ? 4
                                                      : 2);
  /// With more rows per thread, frames of 1080 rows would have too few threads.
  static constexpr int kRowPairs = 2;
  static constexpr Residency kResidency = Residency::kHigh;

  Quotient luma, u, v;
  int width, height;
  int row_begin, row_end;
  RgbToYuvFrame frames[kFrames];

  /// Four pixels of a row and, if chroma needs it and it exists, the pixel to the left of them.
  struct Pixels {
    Quad quad;
    std::uint32_t left;
  };
  struct RowPair {
    Pixels upper, lower;
  };
  struct Nothing {};
  /// The row above a pair, if chroma is sited on the pair's upper row.
  using Above = std::conditional_t<kCositedDown, Pixels, Nothing>;

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x) * kQuad;
    if (x >= width) return;
    const RgbToYuvFrame& frame = frames[kFrames == 1 ? 0 : thread.z];
    const int first = row_begin + static_cast<int>(thread.y) * 2 * kRowPairs;
    Above above = read_above(frame, x, first);
    FRAMELANE_UNROLL
    for (int i = 0; i < kRowPairs; ++i) {
      const int y = first + 2 * i;
      if (y < row_end) convert(frame, x, y, read_pair(frame, x, y), above, NoCount());
    }
  }

  // The same as a body that counts the luma it writes (counting.cuh), for 4:2:0 only. A thread
  // converts one pair of rows in a turn.

  struct Input {
    RowPair pair;
    Above above;
  };
  FRAMELANE_HD Input read(ThreadIndex thread) const {
    const int x = column_of(thread);
    const int y = row_of(thread);
    return {read_pair(frames[0], x, y), read_above(frames[0], x, y)};
  }
  FRAMELANE_HD void operator()(ThreadIndex thread, const Input& input, LumaCount count) const {
    static_assert(kHalfHeight && kFrames == 1);
    Above above = input.above;
    convert(frames[0], column_of(thread), row_of(thread), input.pair, above, count);
  }

 private:
  using Row = RgbRow<kLayout>;

  FRAMELANE_HD static int column_of(ThreadIndex thread) {
    return static_cast<int>(thread.x) * kQuad;
  }
  FRAMELANE_HD int row_of(ThreadIndex thread) const {
    return row_begin + 2 * static_cast<int>(thread.y);
  }
  FRAMELANE_HD static Row source_row(const RgbToYuvFrame& frame, int y) {
    return {frame.source + y * frame.source_pitch};
  }
  FRAMELANE_HD static std::uint8_t* target_row(const RgbToYuvFrame& frame, int plane, int y) {
    return frame.planes[plane] + y * frame.pitches[plane];
  }

  FRAMELANE_HD Pixels read_pixels(Row row, int x) const {
    return {row.quad(x, at_most(width - x, kQuad)), kCositedAcross && x > 0 ? row.left_of(x) : 0};
  }

  FRAMELANE_HD RowPair read_pair(const RgbToYuvFrame& frame, int x, int y) const {
    return {read_pixels(source_row(frame, y), x),
            read_pixels(source_row(frame, at_most(y + 1, height - 1)), x)};
  }

  FRAMELANE_HD Above read_above(const RgbToYuvFrame& frame, int x, int y) const {
    if constexpr (kCositedDown) return read_pixels(source_row(frame, at_least(y - 1, 0)), x);
    return {};
  }

  /// Converts rows y and y + 1. Sets `above` for the next pair.
  template <typename Count>
  FRAMELANE_HD void convert(const RgbToYuvFrame& frame, int x, int y, const RowPair& pair,
                            [[maybe_unused]] Above& above, Count count_luma) const {
    const int count = at_most(width - x, kQuad);
    const auto& [upper, lower] = pair;
    const bool both = y + 1 < row_end;
    if constexpr (kTarget == YuvLayout::kPacked444) {
      store_packed(target_row(frame, 0, y), x, count, upper.quad);
      if (both) store_packed(target_row(frame, 0, y + 1), x, count, lower.quad);
      return;
    }

    const auto store_luma = [&](int row, const Pixels& pixels) {
      const std::uint32_t samples = evaluate_luma(pixels.quad);
      store_quad(target_row(frame, 0, row) + x, count, samples);
      return samples;
    };
    const std::uint32_t upper_luma = store_luma(y, upper);
    const std::uint32_t lower_luma = both ? store_luma(y + 1, lower) : 0;
    if constexpr (kTarget == YuvLayout::kI444) {
      store_quad(target_row(frame, 1, y) + x, count, evaluate_chroma(u, upper.quad));
      store_quad(target_row(frame, 2, y) + x, count, evaluate_chroma(v, upper.quad));
      if (both) {
        store_quad(target_row(frame, 1, y + 1) + x, count, evaluate_chroma(u, lower.quad));
        store_quad(target_row(frame, 2, y + 1) + x, count, evaluate_chroma(v, lower.quad));
      }
    } else if constexpr (kTarget == YuvLayout::kI422) {
      const auto store_row = [&](int row, const Pixels& pixels) {
        store_chroma(
            frame, x, row, count, [&](int i) { return split(pixels.quad.pixels[i]); },
            split(pixels.left));
      };
      store_row(y, upper);
      if (both) store_row(y + 1, lower);
    } else if constexpr (kCositedDown) {
      const auto down = [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        return split(a) + twice(split(b)) + split(c);
      };
      store_chroma(
          frame, x, y / 2, count,
          [&](int i) {
            return down(above.quad.pixels[i], upper.quad.pixels[i], lower.quad.pixels[i]);
          },
          down(above.left, upper.left, lower.left));
      above = lower;
    } else if constexpr (kHalfHeight) {
      store_chroma(
          frame, x, y / 2, count,
          [&](int i) { return split(upper.quad.pixels[i]) + split(lower.quad.pixels[i]); },
          split(upper.left) + split(lower.left));
    }
    count_luma(upper_luma, count);
    if (both) count_luma(lower_luma, count);
  }

  FRAMELANE_HD static std::uint32_t evaluate_one(const Quotient& quotient, std::uint32_t pixel) {
    return quotient(pixel & 0xFF, pixel >> 8 & 0xFF, pixel >> 16 & 0xFF);
  }
  // In full range, the chroma of a pure blue or red rounds up to 256.
  FRAMELANE_HD static std::uint32_t clamped(std::uint32_t sample) {
    return sample < 255 ? sample : 255;
  }
  FRAMELANE_HD std::uint32_t evaluate_luma(const Quad& quad) const {
    return evaluate_one(luma, quad.pixels[0]) | evaluate_one(luma, quad.pixels[1]) << 8 |
           evaluate_one(luma, quad.pixels[2]) << 16 | evaluate_one(luma, quad.pixels[3]) << 24;
  }
  FRAMELANE_HD static std::uint32_t evaluate_chroma(const Quotient& chroma, const Quad& quad) {
    return clamped(evaluate_one(chroma, quad.pixels[0])) |
           clamped(evaluate_one(chroma, quad.pixels[1])) << 8 |
           clamped(evaluate_one(chroma, quad.pixels[2])) << 16 |
           clamped(evaluate_one(chroma, quad.pixels[3])) << 24;
  }
  FRAMELANE_HD static std::uint32_t evaluate_chroma(const Quotient& chroma, Sums sums) {
    return clamped(chroma(sums.outer & 0xFFFF, sums.inner, sums.outer >> 16));
  }

  /// Stores the chroma of one quad in row y of the chroma planes. column(i) returns the vertically
  /// filtered pixel i; `left` is the one to the left of pixel 0.
  template <typename Column>
  FRAMELANE_HD void store_chroma(const RgbToYuvFrame& frame, int x, int y, int count, Column column,
                                 [[maybe_unused]] Sums left) const {
    Sums first = column(0) + column(1);
    Sums second = column(2) + column(3);
    if constexpr (kCositedAcross) {
      first = first + column(0) + (x > 0 ? left : column(0));
      second = second + column(2) + column(1);
    }
    const std::uint32_t us = evaluate_chroma(u, first) | evaluate_chroma(u, second) << 8;
    const std::uint32_t vs = evaluate_chroma(v, first) | evaluate_chroma(v, second) << 8;
    if constexpr (kTarget == YuvLayout::kNv12) {
      std::uint8_t* to = target_row(frame, 1, y) + x;
      const std::uint32_t pairs =
          (us & 0xFF) | (vs & 0xFF) << 8 | (us >> 8) << 16 | (vs >> 8) << 24;
      if (count > 2) return store<std::uint32_t>(to, pairs);
      store<std::uint16_t>(to, static_cast<std::uint16_t>(pairs));
    } else {
      std::uint8_t* to_u = target_row(frame, 1, y) + x / 2;
      std::uint8_t* to_v = target_row(frame, 2, y) + x / 2;
      if (count > 2) {
        store<std::uint16_t>(to_u, static_cast<std::uint16_t>(us));
        store<std::uint16_t>(to_v, static_cast<std::uint16_t>(vs));
      } else {
        *to_u = static_cast<std::uint8_t>(us);
        *to_v = static_cast<std::uint8_t>(vs);
      }
    }
  }

  FRAMELANE_HD static void store_quad(std::uint8_t* to, int count, std::uint32_t samples) {
    if (count == kQuad) return store<std::uint32_t>(to, samples);
    for (int i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(samples >> 8 * i);
  }

  /// Stores Y, U, V of each pixel, one pixel after the other.
  FRAMELANE_HD void store_packed(std::uint8_t* row, int x, int count, const Quad& quad) const {
    const std::uint32_t y = evaluate_luma(quad);
    const std::uint32_t cb = evaluate_chroma(u, quad);
    const std::uint32_t cr = evaluate_chroma(v, quad);
    std::uint8_t* to = row + 3 * x;
    if (count < kQuad) {
      for (int i = 0; i < count; ++i) {
        to[3 * i] = static_cast<std::uint8_t>(y >> 8 * i);
        to[3 * i + 1] = static_cast<std::uint8_t>(cb >> 8 * i);
        to[3 * i + 2] = static_cast<std::uint8_t>(cr >> 8 * i);
      }
      return;
    }
    const auto byte = [](std::uint32_t word, int i) { return word >> 8 * i & 0xFF; };
    const std::uint32_t words[3] = {
        byte(y, 0) | byte(cb, 0) << 8 | byte(cr, 0) << 16 | byte(y, 1) << 24,
        byte(cb, 1) | byte(cr, 1) << 8 | byte(y, 2) << 16 | byte(cb, 2) << 24,
        byte(cr, 2) | byte(y, 3) << 8 | byte(cb, 3) << 16 | byte(cr, 3) << 24};
#ifdef __CUDA_ARCH__
    // Lanes exchange their words, 3 each, so that every store of the warp covers 128 neighbouring
    // bytes. Word c of lane s goes to lane (3 s + c) mod 32, which differs for all s. Warps that
    // reach beyond the row store without this: some of their lanes have ended.
    const int warp_x = x & ~(kWarp * kQuad - 1);
    if (warp_x + kWarp * kQuad <= width) {
      const int lane = static_cast<int>(threadIdx.x % kWarp);
      std::uint32_t received[3];
      FRAMELANE_UNROLL
      for (int c = 0; c < 3; ++c) {
        // The lane s with 3 s + c = lane modulo 32; 11 is 1/3 modulo 32.
        received[c] = __shfl_sync(0xFFFFFFFF, words[c], (11 * (lane - c)) & (kWarp - 1));
      }
      // Word w of the row is word c = w mod 3 of its lane, and 32 = 2 modulo 3.
      const int phase = lane % 3;
      const auto select = [&](int c) {
        return c == 0 ? received[0] : c == 1 ? received[1] : received[2];
      };
      std::uint8_t* warp_to = row + 3 * warp_x + 4 * lane;
      store<std::uint32_t>(warp_to, select(phase));
      store<std::uint32_t>(warp_to + 4 * kWarp, select((phase + 2) % 3));
      store<std::uint32_t>(warp_to + 8 * kWarp, select((phase + 1) % 3));
      return;
    }
#endif
    for (int i = 0; i < 3; ++i) store<std::uint32_t>(to + 4 * i, words[i]);
  }
};

}  // namespace framelane::cuda
