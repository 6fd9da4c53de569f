#pragma once

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/samples.cuh"

// Packed 4:2:2 to planes, or to luma and interleaved chroma: samples keep their values, and for
// 4:2:0 chroma is the mean of two rows or, if it is sited on the upper one, of three. A thread
// converts eight pixels of one row or of two, so that memory limits the speed.

namespace framelane::cuda {

// Four bytes at once.

/// (a + b + 1) / 2, rounded down.
FRAMELANE_HD std::uint32_t mean_up(std::uint32_t a, std::uint32_t b) {
  return (a | b) - (((a ^ b) & 0xFEFEFEFE) >> 1);
}
/// (a + b) / 2, rounded down.
FRAMELANE_HD std::uint32_t mean_down(std::uint32_t a, std::uint32_t b) {
  return (a & b) + (((a ^ b) & 0xFEFEFEFE) >> 1);
}
/// (a + 2 b + c + 2) / 4, rounded down. The mean of a and c may be rounded down first: what is lost
/// is less than what the second division has to spare.
FRAMELANE_HD std::uint32_t mean_121(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return mean_up(b, mean_down(a, c));
}

/// kLuma: 0 for Y U Y V, 1 for U Y V Y. kRows: the rows that one row of chroma is the mean of; with
/// 1 there are as many rows of chroma as of luma.
template <int kLuma, int kRows>
struct Unpack {
  static constexpr int kColumns = 8;
  static constexpr int kStep = kRows == 1 ? 1 : 2;

  Samples2d<const std::uint8_t> from;  // of luma; `data` is the begin of the rows
  Samples2d<std::uint8_t> to[3];
  int height, row_begin, row_end;

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x) * kColumns;
    const int y = row_begin + static_cast<int>(thread.y) * kStep;
    if (x >= to[0].width) return;
    if (x + kColumns > to[0].width) return convert_each(x, y);
    const Packed upper = read(x, y);
    store_luma(x, y, upper);
    if constexpr (kRows == 1) {
      store_chroma(x, y, upper.chroma[0], upper.chroma[1]);
      return;
    }
    const Packed lower = read(x, at_most(y + 1, height - 1));
    if (y + 1 < row_end) store_luma(x, y + 1, lower);
    std::uint32_t chroma[2];
    if constexpr (kRows == 3) {
      const Packed above = read(x, at_least(y - 1, 0));
      for (int i = 0; i < 2; ++i) {
        chroma[i] = mean_121(above.chroma[i], upper.chroma[i], lower.chroma[i]);
      }
    } else {
      for (int i = 0; i < 2; ++i) chroma[i] = mean_up(upper.chroma[i], lower.chroma[i]);
    }
    store_chroma(x, y / 2, chroma[0], chroma[1]);
  }

 private:
  struct Packed {
    std::uint32_t luma[2], chroma[2];  // chroma: U V U V
  };

  FRAMELANE_HD const std::uint8_t* row(int y) const { return from.data + y * from.pitch; }

  FRAMELANE_HD Packed read(int x, int y) const {
    const auto words = load<uint4>(row(y) + 2 * x);
    return {{every_other<kLuma>(words.x, words.y), every_other<kLuma>(words.z, words.w)},
            {every_other<1 - kLuma>(words.x, words.y), every_other<1 - kLuma>(words.z, words.w)}};
  }

  FRAMELANE_HD void store_luma(int x, int y, const Packed& packed) const {
    store(&to[0].at(x, y), uint2{packed.luma[0], packed.luma[1]});
  }

  FRAMELANE_HD void store_chroma(int x, int y, std::uint32_t first, std::uint32_t second) const {
    if (to[1].step == 2) {
      store(&to[1].at(x / 2, y), uint2{first, second});
    } else {
      store(&to[1].at(x / 2, y), every_other<0>(first, second));
      store(&to[2].at(x / 2, y), every_other<1>(first, second));
    }
  }

  /// The last pixels of the rows, if fewer than eight.
  FRAMELANE_HD void convert_each(int x, int y) const {
    for (int j = y; j < at_most(y + kStep, row_end); ++j) {
      for (int i = x; i < to[0].width; ++i) to[0].at(i, j) = row(j)[2 * i + kLuma];
    }
    for (int i = x / 2; i < to[1].width; ++i) {
      for (int k = 0; k < 2; ++k) {
        const int place = 4 * i + 1 - kLuma + 2 * k;
        std::uint32_t sample = row(y)[place];
        if constexpr (kRows > 1) {
          const std::uint32_t lower = row(at_most(y + 1, height - 1))[place];
          sample = kRows == 2 ? mean_up(sample, lower)
                              : mean_121(row(at_least(y - 1, 0))[place], sample, lower);
        }
        to[1 + k].at(i, y / kStep) = static_cast<std::uint8_t>(sample);
      }
    }
  }
};

}  // namespace framelane::cuda
