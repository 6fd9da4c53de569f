#pragma once

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/samples.cuh"

// YUV to YUV of the same subsampling and matrix, with another range or order of planes: each sample
// becomes one other sample. A thread converts sixteen, so that memory limits the speed.

namespace framelane::cuda {

/// Sixteen bytes in registers.
struct Bytes16 {
  std::uint32_t words[4];

  FRAMELANE_HD std::uint32_t operator[](int i) const { return words[i / 4] >> (i % 4 * 8) & 0xFF; }
  FRAMELANE_HD void add(int i, std::uint32_t byte) { words[i / 4] |= byte << (i % 4 * 8); }
};

FRAMELANE_HD Bytes16 load16(const std::uint8_t* at) {
  const auto value = load<uint4>(at);
  return {{value.x, value.y, value.z, value.w}};
}

FRAMELANE_HD void store16(std::uint8_t* at, const Bytes16& bytes) {
  store(at, uint4{bytes.words[0], bytes.words[1], bytes.words[2], bytes.words[3]});
}

/// A FixedForm (kernels/fixed_form.hpp) of one byte that needs no window, as a kernel's parameter.
struct ByteMap {
  std::int32_t factor, offset;
  int fraction_bits;

  FRAMELANE_HD std::uint32_t operator()(std::uint32_t byte) const {
    const int value = (static_cast<std::int32_t>(byte) * factor + offset) >> fraction_bits;
    return static_cast<std::uint32_t>(at_most(at_least(value, 0), 255));
  }
  FRAMELANE_HD Bytes16 operator()(const Bytes16& bytes) const {
    Bytes16 result{};
    FRAMELANE_UNROLL
    for (int i = 0; i < 16; ++i) result.add(i, (*this)(bytes[i]));
    return result;
  }
};

/// The rows of the grid are the rows of luma, followed by those of chroma.
struct Remap {
  static constexpr int kColumns = 16;

  Samples2d<const std::uint8_t> from[3];
  Samples2d<std::uint8_t> to[3];
  ByteMap maps[3];
  int luma_begin, luma_rows, chroma_begin;

  FRAMELANE_HD void operator()(ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x) * kColumns;
    const int row = static_cast<int>(thread.y);
    if (row < luma_rows) {
      convert_luma(x, luma_begin + row);
    } else {
      convert_chroma(x, chroma_begin + row - luma_rows);
    }
  }

 private:
  FRAMELANE_HD void convert_luma(int x, int y) const {
    if (x + kColumns <= to[0].width) {
      store16(&to[0].at(x, y), maps[0](load16(&from[0].at(x, y))));
    } else {
      convert_each(0, x, y);
    }
  }

  FRAMELANE_HD void convert_chroma(int x, int y) const {
    if (x + kColumns > to[1].width) {
      convert_each(1, x, y);
      convert_each(2, x, y);
      return;
    }
    Bytes16 u{}, v{};
    if (from[1].step == 1) {
      u = load16(&from[1].at(x, y));
      v = load16(&from[2].at(x, y));
    } else {
      part(load16(&from[1].at(x, y)), 0, u, v);
      part(load16(&from[1].at(x + kColumns / 2, y)), 8, u, v);
    }
    u = maps[1](u);
    v = maps[2](v);
    if (to[1].step == 1) {
      store16(&to[1].at(x, y), u);
      store16(&to[2].at(x, y), v);
    } else {
      store16(&to[1].at(x, y), joined(u, v, 0));
      store16(&to[1].at(x + kColumns / 2, y), joined(u, v, 8));
    }
  }

  FRAMELANE_HD void convert_each(int channel, int x, int y) const {
    for (; x < to[channel].width; ++x) {
      to[channel].at(x, y) = static_cast<std::uint8_t>(maps[channel](from[channel].at(x, y)));
    }
  }

  /// Separates eight pairs of U and V into bytes from `first` on.
  FRAMELANE_HD static void part(const Bytes16& pairs, int first, Bytes16& u, Bytes16& v) {
    FRAMELANE_UNROLL
    for (int i = 0; i < 8; ++i) {
      u.add(first + i, pairs[2 * i]);
      v.add(first + i, pairs[2 * i + 1]);
    }
  }
  FRAMELANE_HD static Bytes16 joined(const Bytes16& u, const Bytes16& v, int first) {
    Bytes16 pairs{};
    FRAMELANE_UNROLL
    for (int i = 0; i < 8; ++i) {
      pairs.add(2 * i, u[first + i]);
      pairs.add(2 * i + 1, v[first + i]);
    }
    return pairs;
  }
};

}  // namespace framelane::cuda
