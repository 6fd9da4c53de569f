#include "bench/harness/simd_loops.hpp"

#include "bench/harness/device_code.hpp"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per
// instruction set, by including this file again. Its one-lane fallback lacks some operations. There
// the plain loop for the rest of a row does the whole row.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/harness/simd_loops.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace framelane::bench {
namespace {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Shorts = hn::Repartition<std::uint16_t, Bytes>;

// One of Y, U and V: (red * r + green * g + blue * b) / 256 + offset, rounded down. With the offset
// included, no partial sum is negative or exceeds 16 bits, in any order of addition.
struct Coefficients {
  int red, green, blue, offset;
};

HWY_INLINE hn::Vec<Shorts> constant(int value) {
  return hn::Set(Shorts(), static_cast<std::uint16_t>(value));
}

// The channels of every second pixel, in words of 16 bits.
struct Pixels {
  hn::Vec<Shorts> red, green, blue;
};

HWY_INLINE hn::Vec<Shorts> sum_of(const Coefficients& c, const Pixels& pixels) {
  const auto red = hn::Mul(pixels.red, constant(c.red));
  const auto green = hn::Mul(pixels.green, constant(c.green));
  const auto blue = hn::Mul(pixels.blue, constant(c.blue));
  return hn::Add(hn::Add(red, green), hn::Add(blue, constant(c.offset * 256)));
}

HWY_INLINE hn::Vec<Bytes> codes_of(const Coefficients& c, const Pixels& even, const Pixels& odd) {
  const auto low = hn::ShiftRight<8>(sum_of(c, even));
  const auto high = hn::And(sum_of(c, odd), constant(0xFF00));
  return hn::BitCast(Bytes(), hn::Or(low, high));
}

HWY_INLINE hn::Vec<Shorts> even_of(hn::Vec<Bytes> v) {
  return hn::And(hn::BitCast(Shorts(), v), constant(0xFF));
}
HWY_INLINE hn::Vec<Shorts> odd_of(hn::Vec<Bytes> v) {
  return hn::ShiftRight<8>(hn::BitCast(Shorts(), v));
}

#endif

void convert_row(const std::uint8_t* from, std::uint8_t* to, std::size_t pixels) {
  std::size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  const Bytes d;
  for (; x + hn::Lanes(d) <= pixels; x += hn::Lanes(d)) {
    hn::Vec<Bytes> blue, green, red, alpha;
    hn::LoadInterleaved4(d, from + x * 4, blue, green, red, alpha);
    const Pixels even{even_of(red), even_of(green), even_of(blue)};
    const Pixels odd{odd_of(red), odd_of(green), odd_of(blue)};
    hn::StoreInterleaved3(codes_of({66, 129, 25, 16}, even, odd),
                          codes_of({-38, -74, 112, 128}, even, odd),
                          codes_of({112, -94, -18, 128}, even, odd), d, to + x * 3);
  }
#endif
  for (; x < pixels; ++x) {
    const Yuv yuv = classic_yuv(from[x * 4 + 2], from[x * 4 + 1], from[x * 4]);
    to[x * 3] = yuv.y;
    to[x * 3 + 1] = yuv.u;
    to[x * 3 + 2] = yuv.v;
  }
}

#if HWY_TARGET != HWY_SCALAR

// Folds `count` lanes of memory into one vector, except for the last lanes, which are fewer than
// four vectors. Uses four vectors in between, so that no step waits for the one before it. Sets
// `at` to the first lane that was not taken.
template <class D, typename T, class Fold>
HWY_INLINE hn::Vec<D> fold_vectors(D d, const T*& at, std::size_t& count, Fold fold) {
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (; count >= 4 * lanes; count -= 4 * lanes, at += 4 * lanes) {
    a = fold(a, hn::LoadU(d, at));
    b = fold(b, hn::LoadU(d, at + lanes));
    c = fold(c, hn::LoadU(d, at + 2 * lanes));
    e = fold(e, hn::LoadU(d, at + 3 * lanes));
  }
  return fold(fold(a, b), fold(c, e));
}

#endif

float sum_floats(const float* numbers, std::size_t count) {
  float all = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  all = hn::GetLane(hn::SumOfLanes(
      d, fold_vectors(d, numbers, count, [](V x, V y) HWY_ATTR { return hn::Add(x, y); })));
#endif
  for (std::size_t i = 0; i < count; ++i) all += numbers[i];
  return all;
}

std::uint32_t read_words(const std::uint32_t* words, std::size_t count) {
  std::uint32_t all = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint32_t> d;
  using V = hn::Vec<decltype(d)>;
  HWY_ALIGN std::uint32_t each[hn::MaxLanes(d)];
  hn::Store(fold_vectors(d, words, count, [](V x, V y) HWY_ATTR { return hn::Xor(x, y); }), d,
            each);
  for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane) all ^= each[lane];
#endif
  for (std::size_t i = 0; i < count; ++i) all ^= words[i];
  return all;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace framelane::bench {
namespace {
HWY_EXPORT(convert_row);
HWY_EXPORT(sum_floats);
HWY_EXPORT(read_words);
}  // namespace

void convert_classic_simd(const ConstImageView& source, const ImageView& target) {
  for (int y = 0; y < source.height; ++y) {
    HWY_DYNAMIC_DISPATCH(convert_row)
    (source.row(0, y), target.row(0, y), static_cast<std::size_t>(source.width));
  }
}

float sum_floats(const float* numbers, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_floats)(numbers, count);
}

std::uint32_t read_words(const std::uint32_t* words, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(read_words)(words, count);
}

}  // namespace framelane::bench
#endif  // HWY_ONCE
