#include "kernels/remap_kernels.hpp"

#include <cstring>

// Highway includes this file once for each instruction set, and compiles what stands between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE for it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/remap_kernels.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>

#include "kernels/line_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace framelane {
namespace {
namespace HWY_NAMESPACE {

// The one-lane fallback lacks operations that are used below: there the reference converts.
#if HWY_TARGET == HWY_SCALAR

const RemapKernels* get_remap_kernels() { return nullptr; }

#else

using SignedShorts = hn::RebindToSigned<Shorts>;
using HalfBytes = hn::Rebind<std::uint8_t, Shorts>;
using ByteVector = hn::Vec<Bytes>;
using ShortVector = hn::Vec<Shorts>;

HWY_INLINE ShortVector low_bytes(ByteVector v) {
  return hn::And(hn::BitCast(Shorts(), v), hn::Set(Shorts(), 0xFF));
}
HWY_INLINE ShortVector high_bytes(ByteVector v) {
  return hn::ShiftRight<8>(hn::BitCast(Shorts(), v));
}

// Samples that keep their values.
struct Same {
  HWY_INLINE ByteVector operator()(ByteVector v) const { return v; }
};

// ByteMap for each byte of a vector.
class Mapped {
 public:
  explicit Mapped(const ByteMap& map)
      : factor_(hn::Set(Shorts(), map.factor)),
        add_(hn::Set(Shorts(), static_cast<std::uint16_t>(map.offset > 0 ? map.offset : 0))),
        subtract_(hn::Set(Shorts(), static_cast<std::uint16_t>(map.offset < 0 ? -map.offset : 0))),
        fraction_bits_(map.fraction_bits) {}

  HWY_INLINE ByteVector operator()(ByteVector v) const {
    const Shorts d;
    const ShortVector shorts = hn::BitCast(d, v);
    // Each sample times 256, of which the product's upper half is taken.
    const ShortVector even = codes(hn::ShiftLeft<8>(shorts));
    const ShortVector odd = codes(hn::And(shorts, hn::Set(d, 0xFF00)));
    return hn::BitCast(Bytes(), hn::Or(even, hn::ShiftLeft<8>(odd)));
  }

 private:
  HWY_INLINE ShortVector codes(ShortVector samples) const {
    const ShortVector value =
        hn::SaturatedSub(hn::Add(hn::MulHigh(samples, factor_), add_), subtract_);
    return hn::Min(hn::ShiftRightSame(value, fraction_bits_), hn::Set(Shorts(), 255));
  }

  ShortVector factor_, add_, subtract_;
  int fraction_bits_;
};

// Calls body(Same()) or body(Mapped(*map)).
template <class Body>
HWY_INLINE void with_map(const ByteMap* map, Body body) {
  if (map == nullptr) return body(Same());
  body(Mapped(*map));
}

void map_line(const std::uint8_t* from, std::uint8_t* to, std::size_t count, const ByteMap& map) {
  const Bytes d;
  const Mapped mapped(map);
  for_each_vector(d, count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    store(mapped(load(d, from + i, n)), d, to + i, n);
  });
}

void merge(const std::uint8_t* u, const std::uint8_t* v, std::uint8_t* uv, std::size_t count,
           const ByteMap* map) {
  with_map(map, [=](const auto& values) HWY_ATTR {
    const Bytes d;
    for_each_vector(d, count, [=](std::size_t i, std::size_t n) HWY_ATTR {
      std::uint8_t* const at = uv + 2 * i;
      const ByteVector a = values(load(d, u + i, n));
      const ByteVector b = values(load(d, v + i, n));
      if (n == hn::Lanes(d)) return hn::StoreInterleaved2(a, b, d, at);
      std::uint8_t packed[2 * hn::MaxLanes(d)];
      hn::StoreInterleaved2(a, b, d, packed);
      std::memcpy(at, packed, 2 * n);
    });
  });
}

HWY_INLINE void store_halves(ByteVector pairs, std::uint8_t* even, std::uint8_t* odd,
                             std::size_t count) {
  const HalfBytes d;
  const SignedShorts d16;
  store(hn::DemoteTo(d, hn::BitCast(d16, low_bytes(pairs))), d, even, count);
  store(hn::DemoteTo(d, hn::BitCast(d16, high_bytes(pairs))), d, odd, count);
}

void split(const std::uint8_t* uv, std::uint8_t* u, std::uint8_t* v, std::size_t count,
           const ByteMap* map) {
  with_map(map, [=](const auto& values) HWY_ATTR {
    const Bytes d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const ByteVector first = values(hn::LoadU(d, uv + 2 * i));
      const ByteVector second = values(hn::LoadU(d, uv + 2 * i + lanes));
      hn::StoreU(hn::ConcatEven(d, second, first), d, u + i);
      hn::StoreU(hn::ConcatOdd(d, second, first), d, v + i);
    }
    for_each_vector(Shorts(), count - i, [=](std::size_t j, std::size_t n) HWY_ATTR {
      store_halves(values(load(d, uv + 2 * (i + j), 2 * n)), u + i + j, v + i + j, n);
    });
  });
}

// (a + 2 b + c + 2) / 4, rounded down. The mean of a and c may be rounded down first: what is lost
// is less than what the second division has to spare.
HWY_INLINE ByteVector mean_121(ByteVector a, ByteVector b, ByteVector c) {
  const ByteVector odd = hn::And(hn::Xor(a, c), hn::Set(Bytes(), 1));
  return hn::AverageRound(b, hn::Sub(hn::AverageRound(a, c), odd));
}

template <std::size_t kRows>
HWY_INLINE ByteVector mean_down(const ByteVector (&v)[3]) {
  if constexpr (kRows == 1) return v[0];
  if constexpr (kRows == 2) return hn::AverageRound(v[0], v[1]);
  return mean_121(v[0], v[1], v[2]);
}

template <std::size_t kRows>
HWY_INLINE ShortVector sum_down(const ShortVector (&v)[3]) {
  if constexpr (kRows == 1) return v[0];
  if constexpr (kRows == 2) return hn::Add(v[0], v[1]);
  return hn::Add(hn::Add(v[0], v[2]), hn::Add(v[1], v[1]));
}

template <std::size_t kRows>
void mean_of_rows(const MeanRows& rows, std::uint8_t* to, std::size_t count) {
  const Bytes d;
  for_each_vector(d, count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    ByteVector v[3];
    for (std::size_t k = 0; k < kRows; ++k) v[k] = load(d, rows.row[k] + i, n);
    store(mean_down<kRows>(v), d, to + i, n);
  });
}

// A vector of means of columns, from number `i` on, of which `n` are wanted.
template <std::size_t kRows, Across kAcross>
HWY_INLINE ShortVector mean_of_columns(const MeanRows& rows, std::size_t i, std::size_t n) {
  const Bytes d;
  constexpr int kShift = (kRows == 1 ? 0 : kRows == 2 ? 1 : 2) + (kAcross == Across::kTwo ? 1 : 2);
  ShortVector even[3], odd[3], before[3];
  for (std::size_t k = 0; k < kRows; ++k) {
    const std::uint8_t* const from = rows.row[k] + 2 * i;
    const ByteVector v = load(d, from, 2 * n);
    even[k] = low_bytes(v);
    odd[k] = high_bytes(v);
    if (kAcross == Across::kThree) before[k] = high_bytes(load(d, from - 2, 2 * n));
  }
  const ShortVector centre = sum_down<kRows>(even);
  ShortVector sum = hn::Add(centre, sum_down<kRows>(odd));
  if (kAcross == Across::kThree) sum = hn::Add(sum, hn::Add(centre, sum_down<kRows>(before)));
  return hn::ShiftRight<kShift>(hn::Add(sum, hn::Set(Shorts(), 1 << (kShift - 1))));
}

template <std::size_t kRows, Across kAcross>
void mean_rows(const MeanRows& rows, std::uint8_t* to, std::size_t count) {
  if constexpr (kAcross == Across::kOne) return mean_of_rows<kRows>(rows, to, count);
  const Bytes d;
  const std::size_t half = hn::Lanes(Shorts());
  std::size_t i = 0;
  for (; i + 2 * half <= count; i += 2 * half) {
    const ShortVector first = mean_of_columns<kRows, kAcross>(rows, i, half);
    const ShortVector second = mean_of_columns<kRows, kAcross>(rows, i + half, half);
    hn::StoreU(hn::ConcatEven(d, hn::BitCast(d, second), hn::BitCast(d, first)), d, to + i);
  }
  for_each_vector(Shorts(), count - i, [&](std::size_t j, std::size_t n) HWY_ATTR {
    const ShortVector codes = mean_of_columns<kRows, kAcross>(rows, i + j, n);
    store(hn::DemoteTo(HalfBytes(), hn::BitCast(SignedShorts(), codes)), HalfBytes(), to + i + j,
          n);
  });
}

template <std::size_t kRows>
void mean_across(const MeanRows& rows, Across across, std::uint8_t* to, std::size_t count) {
  switch (across) {
    case Across::kOne:
      return mean_rows<kRows, Across::kOne>(rows, to, count);
    case Across::kTwo:
      return mean_rows<kRows, Across::kTwo>(rows, to, count);
    case Across::kThree:
      return mean_rows<kRows, Across::kThree>(rows, to, count);
  }
}

void mean(const MeanRows& rows, Across across, std::uint8_t* to, std::size_t count) {
  switch (rows.count) {
    case 1:
      return mean_across<1>(rows, across, to, count);
    case 2:
      return mean_across<2>(rows, across, to, count);
    default:
      return mean_across<3>(rows, across, to, count);
  }
}

// A vector of pixels of a packed row.
struct PackedPixels {
  ByteVector luma, chroma;  // chroma: U V U V …
};

template <bool kLumaFirst>
HWY_INLINE PackedPixels load_packed(const std::uint8_t* from) {
  const Bytes d;
  const ByteVector first = hn::LoadU(d, from);
  const ByteVector second = hn::LoadU(d, from + hn::Lanes(d));
  const ByteVector even = hn::ConcatEven(d, second, first);
  const ByteVector odd = hn::ConcatOdd(d, second, first);
  return kLumaFirst ? PackedPixels{even, odd} : PackedPixels{odd, even};
}

// One vector of pixels, from column `x` on. Stores the luma, and returns the chroma.
template <bool kLumaFirst, std::size_t kRows>
HWY_INLINE ByteVector unpack_vector(const PackedLines& lines, std::size_t x) {
  const Bytes d;
  constexpr std::size_t kUpper = kRows == 3 ? 1 : 0;
  ByteVector chroma[3];
  for (std::size_t k = 0; k < kRows; ++k) {
    const PackedPixels pixels = load_packed<kLumaFirst>(lines.rows.row[k] + 2 * x);
    chroma[k] = pixels.chroma;
    if (k == kUpper) hn::StoreU(pixels.luma, d, lines.luma[0] + x);
    if (k == kUpper + 1 && lines.luma[1] != nullptr) {
      hn::StoreU(pixels.luma, d, lines.luma[1] + x);
    }
  }
  return mean_down<kRows>(chroma);
}

HWY_INLINE void store_chroma(ByteVector pairs, const ChromaLines& to, std::size_t x) {
  const Bytes d;
  if (to.v == nullptr) return hn::StoreU(pairs, d, to.u + x);
  store_halves(pairs, to.u + x / 2, to.v + x / 2, hn::Lanes(d) / 2);
}

// The last pixels of a row, if fewer than a vector, go through arrays.
template <bool kLumaFirst, std::size_t kRows>
void unpack_tail(const PackedLines& lines, std::size_t x, std::size_t count) {
  constexpr std::size_t kMost = hn::MaxLanes(Bytes());
  std::uint8_t packed[kRows][2 * kMost] = {};
  std::uint8_t luma[2][kMost];
  std::uint8_t u[kMost];
  std::uint8_t v[kMost];
  PackedLines tail{lines.luma_first, {kRows, {}}, {luma[0], luma[1]}, {u, v}};
  if (lines.chroma.v == nullptr) tail.chroma.v = nullptr;
  for (std::size_t k = 0; k < kRows; ++k) {
    std::memcpy(packed[k], lines.rows.row[k] + 2 * x, 2 * count);
    tail.rows.row[k] = packed[k];
  }
  store_chroma(unpack_vector<kLumaFirst, kRows>(tail, 0), tail.chroma, 0);
  std::memcpy(lines.luma[0] + x, luma[0], count);
  if (kRows > 1 && lines.luma[1] != nullptr) std::memcpy(lines.luma[1] + x, luma[1], count);
  if (lines.chroma.v == nullptr) {
    std::memcpy(lines.chroma.u + x, u, count);
  } else {
    std::memcpy(lines.chroma.u + x / 2, u, count / 2);
    std::memcpy(lines.chroma.v + x / 2, v, count / 2);
  }
}

template <bool kLumaFirst, std::size_t kRows>
void unpack_rows(const PackedLines& lines, std::size_t pairs) {
  const Bytes d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t count = 2 * pairs;
  std::size_t x = 0;
  if (lines.chroma.v != nullptr) {
    for (; x + 2 * lanes <= count; x += 2 * lanes) {
      const ByteVector first = unpack_vector<kLumaFirst, kRows>(lines, x);
      const ByteVector second = unpack_vector<kLumaFirst, kRows>(lines, x + lanes);
      hn::StoreU(hn::ConcatEven(d, second, first), d, lines.chroma.u + x / 2);
      hn::StoreU(hn::ConcatOdd(d, second, first), d, lines.chroma.v + x / 2);
    }
  }
  for (; x + lanes <= count; x += lanes) {
    store_chroma(unpack_vector<kLumaFirst, kRows>(lines, x), lines.chroma, x);
  }
  if (x < count) unpack_tail<kLumaFirst, kRows>(lines, x, count - x);
}

template <std::size_t kRows>
void unpack_order(const PackedLines& lines, std::size_t pairs) {
  if (lines.luma_first) return unpack_rows<true, kRows>(lines, pairs);
  unpack_rows<false, kRows>(lines, pairs);
}

void unpack(const PackedLines& lines, std::size_t pairs) {
  switch (lines.rows.count) {
    case 1:
      return unpack_order<1>(lines, pairs);
    case 2:
      return unpack_order<2>(lines, pairs);
    default:
      return unpack_order<3>(lines, pairs);
  }
}

constexpr RemapKernels kRemapKernels = {map_line, merge, split, mean, unpack};

const RemapKernels* get_remap_kernels() { return &kRemapKernels; }

#endif  // HWY_TARGET

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace framelane {
namespace {
HWY_EXPORT(get_remap_kernels);
}  // namespace

const RemapKernels* best_remap_kernels() { return HWY_DYNAMIC_DISPATCH(get_remap_kernels)(); }

}  // namespace framelane
#endif  // HWY_ONCE
