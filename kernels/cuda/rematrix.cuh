#pragma once

#include "kernels/color_spec.hpp"
#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/general.cuh"
#include "kernels/cuda/samples.cuh"

// 4:2:0 to 4:2:0 of another matrix. Every sample of the target depends on chroma at luma sites:
// luma on chroma that is interpolated, chroma on chroma that is interpolated and filtered back,
// which together is [1 6 1] / 8 along both axes in every siting. A thread converts eight pixels of
// two rows. The whole part of a sum is its code. If a fraction is so near to 0 that the sum's error
// could matter, the thread begins again and computes such codes exactly. At the picture's right and
// lower edges it converts its pixels in the general way.

namespace framelane::cuda {

/// A LinearForm in fixed point with 32 bits of fraction:
///   value  = coefficients · samples + offset
///   result = value >> 32, clamped to a byte
/// `value` is at least the true value, and less than `window` above it. So if its fraction is below
/// `window`, the true value may belong to the next lower code.
struct WideForm {
  std::int32_t coefficients[3];
  std::int64_t offset;
  std::uint32_t window;
  /// The form itself, of chroma that is multiplied by `chroma_scale` first.
  Form exact;
  int chroma_scale;
};

/// a * b + c, of 32, 32 and 64 bits. (The compiler would multiply 64 bits: it sees that b is not
/// negative, and takes it for an unsigned number.)
FRAMELANE_HD std::int64_t multiply_add(std::int32_t a, std::int32_t b, std::int64_t c) {
#ifdef __CUDA_ARCH__
  std::int64_t result;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(result) : "r"(a), "r"(b), "l"(c));
  return result;
#else
  return std::int64_t{a} * b + c;
#endif
}

/// Two samples of 16 bits each in a word.
using Pair = std::uint32_t;

FRAMELANE_HD int first(Pair pair) { return static_cast<int>(pair & 0xFFFF); }
FRAMELANE_HD int second(Pair pair) { return static_cast<int>(pair >> 16); }

/// Four neighbouring samples of chroma, and the one before and behind them.
struct Chroma {
  Pair even, odd;  // samples 0 and 2; 1 and 3
  Pair ends;       // samples -1 and 4

  FRAMELANE_HD Pair before_even() const { return bytes_at<0x5410>(ends, odd); }
  FRAMELANE_HD Pair behind_odd() const { return bytes_at<0x7632>(even, ends); }
};
FRAMELANE_HD Chroma operator+(Chroma a, Chroma b) {
  return {a.even + b.even, a.odd + b.odd, a.ends + b.ends};
}
FRAMELANE_HD Chroma operator*(std::uint32_t factor, Chroma a) {
  return {factor * a.even, factor * a.odd, factor * a.ends};
}

template <Siting kSiting>
struct Rematrix {
  static constexpr int kColumns = 8;
  static constexpr int kStep = 2;
  // The scales of the forms' inputs. No sum of chroma exceeds 16 bits.
  static constexpr int kAcrossScale = kSiting == Siting::kCenter ? 4 : 2;
  static constexpr int kDownScale = kSiting == Siting::kTopLeft ? 2 : 4;
  static constexpr int kLumaScale = 16;
  static constexpr int kSiteScale = kAcrossScale * kDownScale;
  static constexpr int kFilteredScale = 64;

  General<true> general;
  WideForm forms[3];
  std::uint32_t window;  // the largest of the forms'

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x) * kColumns;
    const int y = general.row_begin + static_cast<int>(thread.y) * kStep;
    if (x >= general.to[0].width) return;
    if (x + kColumns > general.to[0].width || y + kStep > general.to[0].height) {
      convert_edge(thread);
    } else if (convert<false>(x, y) < window) {
      convert_exactly(x, y);
    }
  }

 private:
  /// What decides whether the results hold.
  using Fraction = std::uint32_t;

  /// Returns the smallest fraction of all sums. kExact: where a fraction is too small, the exact
  /// form decides.
  template <bool kExact>
  FRAMELANE_HD Fraction convert(int x, int y) const {
    const int column = x / 2;
    const int row = y / 2;
    const int above_row = row > 0 ? -1 : 0;
    const int below_row = row + 1 < general.from[1].height ? 1 : 0;
    Chroma above[2], here[2], below[2];
    const ChromaPlace place(general.from, column, row);
    place.read(above_row, above);
    place.read(0, here);
    place.read(below_row, below);

    Fraction fraction = ~Fraction{0};
    const std::uint8_t* const from = &general.from[0].at(x, y);
    std::uint8_t* const to = &general.to[0].at(x, y);
    Chroma sites[2];
    for (int k = 0; k < 2; ++k) {
      sites[k] = kSiting == Siting::kTopLeft ? 2 * here[k] : above[k] + 3 * here[k];
    }
    convert_luma<kExact>(from, to, sites, fraction);
    for (int k = 0; k < 2; ++k) {
      sites[k] = kSiting == Siting::kTopLeft ? here[k] + below[k] : 3 * here[k] + below[k];
    }
    convert_luma<kExact>(from + general.from[0].pitch, to + general.to[0].pitch, sites, fraction);
    for (int k = 0; k < 2; ++k) here[k] = above[k] + 6 * here[k] + below[k];
    convert_chroma<kExact>(column, row, here, fraction);
    return fraction;
  }

  /// Four columns of chroma, and the neighbours that the picture has.
  struct ChromaPlace {
    const std::uint8_t* u;
    const std::uint8_t* v;
    std::ptrdiff_t u_pitch, v_pitch;
    int left, right;
    bool interleaved;

    FRAMELANE_HD ChromaPlace(const Samples2d<const std::uint8_t> (&from)[3], int column, int row)
        : u(&from[1].at(column, row)),
          v(&from[2].at(column, row)),
          u_pitch(from[1].pitch),
          v_pitch(from[2].pitch),
          left(column > 0 ? -from[1].step : 0),
          right((column + 4 < from[1].width ? 4 : 3) * from[1].step),
          interleaved(from[1].step == 2) {}

    FRAMELANE_HD void read(int rows_below, Chroma (&chroma)[2]) const {
      const std::uint8_t* const of[2] = {u + rows_below * u_pitch, v + rows_below * v_pitch};
      std::uint32_t words[2];
      if (interleaved) {
        const auto pairs = load<uint2>(of[0]);
        words[0] = every_other<0>(pairs.x, pairs.y);
        words[1] = every_other<1>(pairs.x, pairs.y);
      } else {
        for (int k = 0; k < 2; ++k) words[k] = load<std::uint32_t>(of[k]);
      }
      for (int k = 0; k < 2; ++k) {
        const Pair ends = of[k][left] | std::uint32_t{of[k][right]} << 16;
        chroma[k] = {words[k] & 0x00FF00FF, words[k] >> 8 & 0x00FF00FF, ends};
      }
    }
  };

  /// A row of eight, from the chroma of its sites, which is summed down.
  template <bool kExact>
  FRAMELANE_HD void convert_luma(const std::uint8_t* from, std::uint8_t* to,
                                 const Chroma (&sums)[2], Fraction& fraction) const {
    Pair sites[2][4];  // pixels 0 and 4, 1 and 5, 2 and 6, 3 and 7
    for (int k = 0; k < 2; ++k) {
      const Chroma& s = sums[k];
      if constexpr (kSiting == Siting::kCenter) {
        sites[k][0] = s.before_even() + 3 * s.even;
        sites[k][1] = 3 * s.even + s.odd;
        sites[k][2] = s.even + 3 * s.odd;
        sites[k][3] = 3 * s.odd + s.behind_odd();
      } else {
        sites[k][0] = 2 * s.even;
        sites[k][1] = s.even + s.odd;
        sites[k][2] = 2 * s.odd;
        sites[k][3] = s.odd + s.behind_odd();
      }
    }
    const auto luma = load<uint2>(from);
    int codes[8];
    FRAMELANE_UNROLL
    for (int i = 0; i < 4; ++i) {
      codes[i] = code<kExact, true>(forms[0], kLumaScale * byte_of(luma.x, i), first(sites[0][i]),
                                    first(sites[1][i]), fraction);
      codes[4 + i] = code<kExact, true>(forms[0], kLumaScale * byte_of(luma.y, i),
                                        second(sites[0][i]), second(sites[1][i]), fraction);
    }
    store(to, uint2{saturated(codes[0], codes[1], codes[2], codes[3]),
                    saturated(codes[4], codes[5], codes[6], codes[7])});
  }

  /// A row of four, from chroma that is summed down. The form of neither depends on luma.
  template <bool kExact>
  FRAMELANE_HD void convert_chroma(int column, int row, const Chroma (&sums)[2],
                                   Fraction& fraction) const {
    Pair filtered[2][2];  // samples 0 and 2, 1 and 3
    for (int k = 0; k < 2; ++k) {
      const Chroma& s = sums[k];
      filtered[k][0] = s.before_even() + 6 * s.even + s.odd;
      filtered[k][1] = s.even + 6 * s.odd + s.behind_odd();
    }
    int codes[2][4];
    FRAMELANE_UNROLL
    for (int k = 0; k < 2; ++k) {
      FRAMELANE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const Pair u = filtered[0][i];
        const Pair v = filtered[1][i];
        codes[k][i] = code<kExact, false>(forms[1 + k], 0, first(u), first(v), fraction);
        codes[k][2 + i] = code<kExact, false>(forms[1 + k], 0, second(u), second(v), fraction);
      }
    }
    const auto& to = general.to;
    if (to[1].step == 1) {
      for (int k = 0; k < 2; ++k) {
        store(&to[1 + k].at(column, row),
              saturated(codes[k][0], codes[k][1], codes[k][2], codes[k][3]));
      }
    } else {
      store(&to[1].at(column, row),
            uint2{saturated(codes[0][0], codes[1][0], codes[0][1], codes[1][1]),
                  saturated(codes[0][2], codes[1][2], codes[0][3], codes[1][3])});
    }
  }

  template <bool kExact, bool kFromLuma>
  FRAMELANE_HD static int code(const WideForm& form, int luma, int u, int v, Fraction& smallest) {
    std::int64_t value = form.offset;
    if (kFromLuma) value = multiply_add(form.coefficients[0], luma, value);
    value = multiply_add(form.coefficients[1], u, value);
    value = multiply_add(form.coefficients[2], v, value);
    const auto fraction = static_cast<Fraction>(value);
    if (kExact && fraction < form.window) {
      return form.exact(luma, form.chroma_scale * u, form.chroma_scale * v);
    }
    smallest = fraction < smallest ? fraction : smallest;
    return static_cast<int>(value >> 32);
  }

  // Not inline: few threads need them, and they have registers of their own.
  __host__ __device__ __noinline__ void convert_exactly(int x, int y) const { convert<true>(x, y); }
  __host__ __device__ __noinline__ void convert_edge(ThreadIndex thread) const {
    for (unsigned i = 0; i < kColumns / 2; ++i) {
      general({kColumns / 2 * thread.x + i, thread.y, thread.z});
    }
  }
};

}  // namespace framelane::cuda
