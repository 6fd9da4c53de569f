#pragma once

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/scale.cuh"
#include "kernels/cuda/scale_source.cuh"

// How ScaleTile (scale_tile.cuh) decides samples that floats leave in doubt: all lanes of a warp
// work on one sample. What this takes is mostly waiting for memory, so lanes ask for many samples
// of the source at once. And the lists in which ScaleTile and ScaleMatrix (scale_matrix.cuh) keep
// them.

namespace framelane::cuda {

/// What a lane adds to the real value of sample (x, y); see exact_sum::real_value.
/// `colour(column, row)` is the sum of the source's channels there, each with its coefficient.
template <typename Colour>
FRAMELANE_HD double real_part(const TermView& term, int x, int y, int lane, Colour colour) {
  constexpr int kRows = 8;
  const std::int64_t* const columns = term.across.numerators + std::int64_t{x} * term.across.taps;
  const std::int64_t* const rows = term.down.numerators + std::int64_t{y} * term.down.taps;
  const int first_column = term.across.first[x];
  const int first_row = term.down.first[y];
  int wide = kWarp;  // lanes that are beside each other
  while (wide / 2 >= term.across.taps) wide /= 2;
  const int lanes_down = kWarp / wide;
  double sum = 0;
  for (int i = lane % wide; i < term.across.taps; i += wide) {
    const std::int64_t column = columns[i];
    double of_column = 0;
    for (int j = lane / wide; j < term.down.taps; j += kRows * lanes_down) {
      std::int64_t weights[kRows];
      typename Colour::Sample samples[kRows];
      FRAMELANE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const int row = at_most(j + r * lanes_down, term.down.taps - 1);
        weights[r] = j + r * lanes_down == row ? rows[row] : 0;
        samples[r] = colour.at(first_column + i, first_row + row);
      }
      FRAMELANE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        of_column += static_cast<double>(weights[r]) * colour.value(samples[r]);
      }
    }
    sum += static_cast<double>(column) * of_column;
  }
  return sum;
}

/// One channel of planes.
struct ColourOfPlane {
  using Sample = std::uint8_t;
  const Samples2d<const std::uint8_t>& plane;
  double factor;

  FRAMELANE_HD Sample at(int x, int y) const { return plane.at(x, y); }
  FRAMELANE_HD double value(Sample sample) const { return factor * sample; }
};

/// All channels of pixels.
template <typename Source>
struct ColourOfPixels {
  using Sample = std::uint32_t;
  const Source& source;
  const TileFrame& frame;
  double factors[3];  // in the order of memory

  FRAMELANE_HD Sample at(int x, int y) const { return source.pixel(frame, x, y); }
  FRAMELANE_HD double value(Sample sample) const {
    double sum = 0;
    FRAMELANE_UNROLL
    for (int k = 0; k < 3; ++k) {
      sum += factors[k] * static_cast<double>(byte_at(sample, source.selectors[k]));
    }
    return sum;
  }
};

#ifdef __CUDA_ARCH__
/// The lanes of a warp, for exact_sum::code.
struct WarpTeam {
  static constexpr int kThreads = kWarp;
  __device__ int first() const { return static_cast<int>(threadIdx.x % kWarp); }
  __device__ WideInt sum(WideInt own) const {
    for (int step = kWarp / 2; step > 0; step /= 2) {
      WideInt other(0);
      for (int i = 0; i < WideInt::kWords; ++i) {
        other.word(i) = __shfl_xor_sync(0xFFFFFFFF, own.word(i), step);
      }
      own += other;
    }
    return own;
  }
  __device__ Int128 sum(Int128 own) const {
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const auto low = static_cast<std::uint64_t>(own);
      const auto high = static_cast<std::int64_t>(own >> 64);
      own += Int128{__shfl_xor_sync(0xFFFFFFFF, high, step)} << 64 |
             __shfl_xor_sync(0xFFFFFFFF, low, step);
    }
    return own;
  }
};
#else
using WarpTeam = exact_sum::Alone;
#endif

/// Sample (x, y) of a channel. All lanes of a warp call it together, and all have the result.
template <typename Source>
__host__ __device__ __noinline__ int decided_code(const Source& source, const TileFrame& frame,
                                                  const TermView& term, const SumForm& form,
                                                  int channel, int x, int y) {
  const auto of_lane = [&](int lane) {
    if constexpr (Source::kSeparate) {
      const ColourOfPlane colour{frame.from[channel],
                                 static_cast<double>(form.coefficients[channel])};
      return real_part(term, x, y, lane, colour);
    } else {
      ColourOfPixels<Source> colour{source, frame, {}};
      for (int k = 0; k < 3; ++k) {
        colour.factors[k] = static_cast<double>(form.coefficients[source.order[k]]);
      }
      return real_part(term, x, y, lane, colour);
    }
  };
#ifdef __CUDA_ARCH__
  double sum = of_lane(static_cast<int>(threadIdx.x % kWarp));
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, step);
#else
  double sum = 0;
  for (int lane = 0; lane < kWarp; ++lane) sum += of_lane(lane);
#endif
  sum = sum / static_cast<double>(term.across.denominators[x]) /
        static_cast<double>(term.down.denominators[y]);
  sum = (sum + static_cast<double>(form.offset)) / static_cast<double>(form.denominator);
  return code_near(sum, &term, 1, form, x, y, ScaleReader{frame.from}, WarpTeam{});
}

/// A sample in doubt in one word.
struct Doubt {
  int line, x, y;

  FRAMELANE_HD std::uint32_t packed() const {
    return static_cast<std::uint32_t>(line << 28 | y << 14 | x);
  }
  FRAMELANE_HD static Doubt of(std::uint32_t packed) {
    return {static_cast<int>(packed >> 28), static_cast<int>(packed & 0x3FFF),
            static_cast<int>(packed >> 14 & 0x3FFF)};
  }
};

/// A tile's samples in doubt, in shared memory. Each warp has a list; all warps work them off
/// together at the end.
struct DoubtLists {
  static constexpr int kWarps = static_cast<int>(kBlockThreads) / kWarp;
  static constexpr int kRoom = 127;
  struct List {
    int count;  // those that there was no room for, too
    std::uint32_t doubts[kRoom];

    /// Puts the doubts of a warp's lanes in its list. On the GPU all lanes call it together.
    FRAMELANE_HD void add([[maybe_unused]] unsigned thread, Doubt doubt, bool is_doubt) {
#ifdef __CUDA_ARCH__
      const unsigned in_warp = __ballot_sync(0xFFFFFFFF, is_doubt);
      const unsigned lane = thread % kWarp;
      const int before = count;
      const int place = before + __popc(in_warp & ((1U << lane) - 1));
      if (is_doubt && place < kRoom) doubts[place] = doubt.packed();
      __syncwarp();
      if (lane == 0) count = before + __popc(in_warp);
      __syncwarp();
#else
      if (!is_doubt) return;
      if (count < kRoom) doubts[count] = doubt.packed();
      ++count;
#endif
    }
  };
  List lists[kWarps];

  /// Then it is not known which ones are in doubt. That needs a picture with a colour whose code is
  /// nearly a tie.
  FRAMELANE_HD bool are_full() const {
    bool full = false;
    for (const List& list : lists) full = full || list.count > kRoom;
    return full;
  }
};

}  // namespace framelane::cuda
