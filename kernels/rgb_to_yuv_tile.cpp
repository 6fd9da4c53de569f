// Longer than 400 lines: all SIMD of this converter is in this one file, since Highway has each
// such file, and its own headers with it, compiled once for every instruction set.

#include "kernels/rgb_to_yuv_tile.hpp"

#include <cstddef>
#include <cstring>

// Highway includes this file once for each instruction set, and compiles what stands between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE for it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rgb_to_yuv_tile.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
// Highway chooses this instruction set, and the better ones (lower numbers) that later versions of
// it know, only if the CPU has VNNI, but does not always tell the compiler that it may use VNNI.
#undef FRAMELANE_VNNI
#if HWY_TARGET <= HWY_AVX3_DL && HWY_COMPILER_GCC_ACTUAL
#define FRAMELANE_VNNI 1
#pragma GCC target("avx512vnni")
#else
#define FRAMELANE_VNNI 0
#endif
namespace framelane {
namespace {
namespace HWY_NAMESPACE {

// The one-lane fallback lacks operations that are used below.
#if HWY_TARGET == HWY_SCALAR

TileFunction get_tile_function(const RgbToYuvPlan&) { return nullptr; }
WidenFunction get_widen_function() { return nullptr; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::CappedTag<std::uint32_t, kMaxLanes>;
using I32 = hn::RebindToSigned<U32>;
using I16 = hn::Repartition<std::int16_t, I32>;
using U32s = hn::Vec<U32>;
using I32s = hn::Vec<I32>;

constexpr int kLanes = static_cast<int>(hn::MaxLanes(U32()));

// Fraction bits in full range, where codes may round up to 256. Limited range has one bit more.
constexpr int kFullRangeBits = 22;

// The bytes of pixels, or weighted sums of them, as pairs of 16-bit numbers: bytes 0 and 2 in
// `outer`, 1 and 3 in `inner`.
struct Pixels {
  U32s outer, inner;
};

HWY_INLINE Pixels split(U32s pixels) {
  const U32 d;
  const hn::Repartition<std::uint16_t, U32> d16;
  return {hn::And(pixels, hn::Set(d, 0x00FF00FF)),
          hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(d16, pixels)))};
}

HWY_INLINE Pixels add(Pixels a, Pixels b) {
  return {hn::Add(a.outer, b.outer), hn::Add(a.inner, b.inner)};
}

// sum + a · b, for each pair.
HWY_INLINE I32s multiply_pairs(U32s a, U32s b, I32s sum) {
#if FRAMELANE_VNNI
  return I32s{_mm512_dpwssd_epi32(sum.raw, a.raw, b.raw)};
#else
  const I16 d16;
  I32s rest = hn::Zero(I32());
  sum = hn::ReorderWidenMulAccumulate(I32(), hn::BitCast(d16, a), hn::BitCast(d16, b), sum, rest);
  return hn::RearrangeToOddPlusEven(sum, rest);
#endif
}

// A form in registers. In memory the compiler would load it again after each store, because the
// store might have changed it.
struct Factors {
  U32s even_high, odd_high, even_low, odd_low;
  I32s offset;
  U32s fraction;
};

HWY_INLINE Factors factors_of(const PixelForm& form) {
  const U32 d;
  return {hn::Set(d, form.even.high),
          hn::Set(d, form.odd.high),
          hn::Set(d, form.even.low),
          hn::Set(d, form.odd.low),
          hn::Set(I32(), form.offset_high),
          hn::Set(d, static_cast<std::uint32_t>(form.fraction_above_window))};
}

HWY_INLINE I32s fixed_point(const Factors& form, Pixels pixels) {
  I32s value = multiply_pairs(pixels.outer, form.even_high, form.offset);
  value = multiply_pairs(pixels.inner, form.odd_high, value);
  value = hn::ShiftLeft<PixelForm::kLowBits>(value);
  value = multiply_pairs(pixels.outer, form.even_low, value);
  return multiply_pairs(pixels.inner, form.odd_low, value);
}

// Zero in lanes where one of the values is inside the window (see FixedForm).
HWY_INLINE U32s distance(U32s fraction, I32s a, I32s b) {
  const U32 d;
  return hn::Min(hn::And(hn::BitCast(d, a), fraction), hn::And(hn::BitCast(d, b), fraction));
}

HWY_INLINE bool any_zero(U32s v) { return !hn::AllFalse(U32(), hn::Eq(v, hn::Zero(U32()))); }

template <int kBits>
HWY_INLINE U32s codes(I32s values) {
  return hn::BitCast(U32(), hn::ShiftRight<kBits>(values));
}

HWY_INLINE U32s multiply_high(U32s a, std::uint32_t b) {
  const U32 d;
  const hn::Repartition<std::uint64_t, U32> d64;
  const auto factor = hn::Set(d, b);
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), factor);
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

// ExactQuotient in every lane. Clamped, because in full range a pure blue or red rounds up to 256.
HWY_INLINE U32s exact_codes(const PixelForm& form, Pixels pixels) {
  const U32 d;
  const auto low = hn::Set(d, 0xFFFF);
  const auto term = [&](U32s bytes, std::size_t i)
                        HWY_ATTR { return hn::Mul(bytes, hn::Set(d, form.exact_coefficients[i])); };
  const auto numerator = hn::Add(
      hn::Add(hn::Add(term(hn::And(pixels.outer, low), 0), term(hn::And(pixels.inner, low), 1)),
              hn::Add(term(hn::ShiftRight<16>(pixels.outer), 2),
                      term(hn::ShiftRight<16>(pixels.inner), 3))),
      hn::Set(d, form.exact.offset));
  return hn::Min(hn::ShiftRightSame(multiply_high(numerator, form.exact.magic),
                                    static_cast<int>(form.exact.shift)),
                 hn::Set(d, 255));
}

// Streaming stores need at least 16 bytes; fewer are stored normally.
template <class D>
HWY_INLINE void put(hn::Vec<D> v, D d, hn::TFromD<D>* to, bool streaming) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) >= 16) {
    if (streaming) return hn::Stream(v, d, to);
  }
  hn::StoreU(v, d, to);
}

// Stores the low two bytes of each lane.
HWY_INLINE void store_pairs(U32s pairs, std::uint8_t* to, bool streaming) {
  const hn::Rebind<std::uint16_t, U32> d16;
  const hn::Repartition<std::uint8_t, decltype(d16)> d8;
  put(hn::BitCast(d8, hn::DemoteTo(d16, hn::BitCast(I32(), pairs))), d8, to, streaming);
}

// Stores codes below 256 as bytes a0 b0 a1 b1 …
HWY_INLINE void store_pairs(U32s a, U32s b, std::uint8_t* to, bool streaming) {
  store_pairs(hn::Or(a, hn::ShiftLeft<8>(b)), to, streaming);
}

// The same for fixed-point numbers.
template <int kBits>
HWY_INLINE void store_pairs(I32s a, I32s b, std::uint8_t* to, bool streaming) {
  const U32 d;
  const auto b_above_fraction = hn::BitCast(d, hn::ShiftRight<kBits - 8>(b));
  store_pairs(hn::OrAnd(codes<kBits>(a), b_above_fraction, hn::Set(d, 0xFF00)), to, streaming);
}

HWY_INLINE void store_bytes(U32s codes, std::uint8_t* to, bool streaming) {
  put(hn::U8FromU32(codes), hn::Rebind<std::uint8_t, U32>(), to, streaming);
}

struct Columns {
  Pixels even, odd;
};

HWY_INLINE Columns load_columns(const std::uint8_t* from) {
  const U32 d;
  const hn::Repartition<std::uint8_t, U32> d8;
  const auto first = hn::BitCast(d, hn::LoadU(d8, from));
  const auto second = hn::BitCast(d, hn::LoadU(d8, from + kLanes * kBytesPerPixel));
  return {split(hn::ConcatEven(d, second, first)), split(hn::ConcatOdd(d, second, first))};
}

// Reads the pixels again. Passing them in memory would cost stores in the loop of every caller.
HWY_NOINLINE void store_each_exactly(const PixelForm& form, const std::uint8_t* from,
                                     std::uint8_t* to, bool streaming) {
  const Columns columns = load_columns(from);
  store_pairs(exact_codes(form, columns.even), exact_codes(form, columns.odd), to, streaming);
}

// A code for every pixel. `kClamp`: values may round up to 256.
template <int kBits, bool kClamp>
HWY_INLINE void store_each(const PixelForm& form, const Factors& factors, const std::uint8_t* from,
                           const Columns& columns, std::uint8_t* to, bool streaming) {
  auto even = fixed_point(factors, columns.even);
  auto odd = fixed_point(factors, columns.odd);
  if constexpr (kClamp) {
    const auto greatest = hn::Set(I32(), form.greatest);
    even = hn::Min(even, greatest);
    odd = hn::Min(odd, greatest);
  }
  if (HWY_UNLIKELY(any_zero(distance(factors.fraction, even, odd)))) {
    store_each_exactly(form, from, to, streaming);
  } else {
    store_pairs<kBits>(even, odd, to, streaming);
  }
}

// Prefetches two rows further down, so that loading them need not wait for memory. (Below the last
// row this has no effect.)
HWY_INLINE void prefetch_next(const SourceRows& rows, int offset) {
  constexpr int kLine = 64;
  const std::ptrdiff_t pitch = rows.lower - rows.upper;
  for (int i = 0; i < 2 * kLanes * kBytesPerPixel; i += kLine) {
    hwy::Prefetch(rows.upper + 2 * pitch + offset + i);
    hwy::Prefetch(rows.lower + 2 * pitch + offset + i);
  }
}

// Converts luma, and sums the columns of both rows with weights [1 1], or of three rows with [1 2
// 1] for top-left siting, where chroma sits on the upper row. 4:2:2 has the upper row alone.
template <ChromaGrid kGrid, Siting kSiting, int kBits>
void sum_columns(const PixelForm& luma, const SourceRows& rows, const TargetRows target, int count,
                 ColumnSums& sums) {
  const U32 d;
  const Factors factors = factors_of(luma);
  for (int x = 0; x < count; x += 2 * kLanes) {
    const std::uint8_t* const upper_row = rows.upper + x * kBytesPerPixel;
    const std::uint8_t* const lower_row = rows.lower + x * kBytesPerPixel;
    prefetch_next(rows, x * kBytesPerPixel);
    Columns upper = load_columns(upper_row);
    store_each<kBits, false>(luma, factors, upper_row, upper, target.upper + x, target.streaming);
    if constexpr (kGrid == ChromaGrid::k420) {
      const Columns lower = load_columns(lower_row);
      if (target.lower != nullptr) {
        store_each<kBits, false>(luma, factors, lower_row, lower, target.lower + x,
                                 target.streaming);
      }
      if (kSiting == Siting::kTopLeft) {
        const Columns above = load_columns(rows.above + x * kBytesPerPixel);
        upper = {add(add(upper.even, upper.even), above.even),
                 add(add(upper.odd, upper.odd), above.odd)};
      }
      upper = {add(upper.even, lower.even), add(upper.odd, lower.odd)};
    }
    const int i = x / 2;
    hn::Store(upper.even.outer, d, sums.even_outer.data() + i);
    hn::Store(upper.even.inner, d, sums.even_inner.data() + i);
    hn::Store(upper.odd.outer, d, sums.odd_outer.data() + kMaxLanes + i);
    hn::Store(upper.odd.inner, d, sums.odd_inner.data() + kMaxLanes + i);
  }
}

// Filters across columns: [1 2 1], or [1 1] if chroma sits between columns. No sum exceeds 255 *
// 16, so the two sums in a 32-bit lane do not overlap.
template <Siting kSiting>
HWY_INLINE U32s filter_across(const std::uint32_t* even, const std::uint32_t* odd, int i) {
  const U32 d;
  const auto centre = hn::Load(d, even + i);
  const auto right = hn::Load(d, odd + kMaxLanes + i);
  if (kSiting == Siting::kCenter) return hn::Add(centre, right);
  const auto left = hn::LoadU(d, odd + kMaxLanes + i - 1);
  return hn::Add(hn::Add(centre, centre), hn::Add(left, right));
}

template <Siting kSiting>
HWY_INLINE Pixels chroma_pixels(const ColumnSums& columns, int i) {
  return {filter_across<kSiting>(columns.even_outer.data(), columns.odd_outer.data(), i),
          filter_across<kSiting>(columns.even_inner.data(), columns.odd_inner.data(), i)};
}

HWY_INLINE void store_chroma(U32s u, U32s v, const TargetRows& target, int i) {
  if (target.v == nullptr) {
    store_pairs(u, v, target.u + 2 * i, target.streaming);
  } else {
    store_bytes(u, target.u + i, target.streaming);
    store_bytes(v, target.v + i, target.streaming);
  }
}

// The same for fixed-point numbers.
template <int kBits>
HWY_INLINE void store_chroma(I32s u, I32s v, const TargetRows& target, int i) {
  if (target.v == nullptr) {
    store_pairs<kBits>(u, v, target.u + 2 * i, target.streaming);
  } else {
    store_chroma(codes<kBits>(u), codes<kBits>(v), target, i);
  }
}

template <Siting kSiting>
HWY_NOINLINE void store_exact_chroma(const RgbToYuvPlan& plan, const ColumnSums& columns,
                                     const TargetRows& target, int i) {
  const Pixels pixels = chroma_pixels<kSiting>(columns, i);
  store_chroma(exact_codes(plan.u, pixels), exact_codes(plan.v, pixels), target, i);
}

template <Siting kSiting, int kBits>
void chroma_row(const RgbToYuvPlan& plan, const ColumnSums& columns, const TargetRows target,
                int count) {
  const I32 d;
  const Factors factors_u = factors_of(plan.u);
  const Factors factors_v = factors_of(plan.v);
  for (int i = 0; i < count; i += kLanes) {
    const Pixels pixels = chroma_pixels<kSiting>(columns, i);
    auto u = fixed_point(factors_u, pixels);
    auto v = fixed_point(factors_v, pixels);
    if (kBits == kFullRangeBits) {
      u = hn::Min(u, hn::Set(d, plan.u.greatest));
      v = hn::Min(v, hn::Set(d, plan.v.greatest));
    }
    if (HWY_UNLIKELY(any_zero(distance(factors_u.fraction, u, v)))) {
      store_exact_chroma<kSiting>(plan, columns, target, i);
    } else {
      store_chroma<kBits>(u, v, target, i);
    }
  }
}

// 4:4:4: three codes for every pixel.
template <int kBits>
void convert_row(const RgbToYuvPlan& plan, const SourceRows& source, const TargetRows& target,
                 int count) {
  constexpr bool kClamp = kBits == kFullRangeBits;
  const Factors luma = factors_of(plan.luma);
  for (int x = 0; x < count; x += 2 * kLanes) {
    const std::uint8_t* const from = source.upper + x * kBytesPerPixel;
    prefetch_next(source, x * kBytesPerPixel);
    store_each<kBits, false>(plan.luma, luma, from, load_columns(from), target.upper + x,
                             target.streaming);
  }
  const Factors u = factors_of(plan.u);
  const Factors v = factors_of(plan.v);
  for (int x = 0; x < count; x += 2 * kLanes) {
    const std::uint8_t* const from = source.upper + x * kBytesPerPixel;
    const Columns columns = load_columns(from);
    store_each<kBits, kClamp>(plan.u, u, from, columns, target.u + x, target.streaming);
    store_each<kBits, kClamp>(plan.v, v, from, columns, target.v + x, target.streaming);
  }
}

template <ChromaGrid kGrid, Siting kSiting, int kBits>
void convert_rows(const RgbToYuvPlan& plan, const SourceRows& source, const TargetRows& target,
                  int count, bool leftmost, ColumnSums& columns) {
  if constexpr (kGrid == ChromaGrid::k444) {
    return convert_row<kBits>(plan, source, target, count);
  }
  sum_columns<kGrid, kSiting, kBits>(plan.luma, source, target, count, columns);
  if (leftmost) {
    columns.odd_outer[kMaxLanes - 1] = columns.even_outer[0];
    columns.odd_inner[kMaxLanes - 1] = columns.even_inner[0];
  }
  chroma_row<kSiting, kBits>(plan, columns, target, count / 2);
  const auto last = static_cast<std::size_t>(kMaxLanes + count / 2 - 1);
  columns.odd_outer[kMaxLanes - 1] = columns.odd_outer[last];
  columns.odd_inner[kMaxLanes - 1] = columns.odd_inner[last];
}

// A tile's results, which are collected here until they can be written as whole cache lines.
struct TileLines {
  alignas(64) std::array<std::uint8_t, kTile> upper, lower, u, v;

  TargetRows rows(const TargetRows& real) {
    return {upper.data(), real.lower == nullptr ? nullptr : lower.data(), u.data(),
            real.v == nullptr ? nullptr : v.data(), false};
  }
};

HWY_INLINE void stream(const std::uint8_t* from, int bytes, std::uint8_t* to) {
  const hn::CappedTag<std::uint8_t, 64> line;
  const hn::CappedTag<std::uint8_t, 16> part;
  constexpr int kLine = static_cast<int>(hn::MaxLanes(line));
  int i = 0;
  for (; i + kLine <= bytes; i += kLine) hn::Stream(hn::Load(line, from + i), line, to + i);
  for (; i < bytes; i += 16) hn::Stream(hn::Load(part, from + i), part, to + i);
}

template <ChromaGrid kGrid, Siting kSiting, int kBits>
void convert_tile(const RgbToYuvPlan& plan, const SourceRows& source, const TargetRows& target,
                  int count, bool leftmost, ColumnSums& columns) {
  // With the widest vectors, conversion is as fast as memory. Streaming a cache line in parts would
  // then keep a write buffer busy until the line is complete, so the results are collected first.
  // With narrower vectors the additional copy costs more than it gains.
  if (kLanes == kMaxLanes && target.streaming) {
    TileLines lines;
    convert_rows<kGrid, kSiting, kBits>(plan, source, lines.rows(target), count, leftmost, columns);
    stream(lines.upper.data(), count, target.upper);
    if (target.lower != nullptr) stream(lines.lower.data(), count, target.lower);
    const int chroma = kGrid == ChromaGrid::k444 ? count : count / 2;
    stream(lines.u.data(), target.v == nullptr ? 2 * chroma : chroma, target.u);
    if (target.v != nullptr) stream(lines.v.data(), chroma, target.v);
  } else {
    convert_rows<kGrid, kSiting, kBits>(plan, source, target, count, leftmost, columns);
  }
}

template <ChromaGrid kGrid, Siting kSiting>
TileFunction tile_function(int fraction_bits) {
  return fraction_bits == kFullRangeBits ? convert_tile<kGrid, kSiting, kFullRangeBits>
                                         : convert_tile<kGrid, kSiting, kFullRangeBits + 1>;
}

TileFunction get_tile_function(const RgbToYuvPlan& plan) {
  const int bits = plan.fraction_bits;
  const bool centre = plan.siting == Siting::kCenter;
  switch (plan.grid) {
    case ChromaGrid::k444:  // where chroma has no siting
      return tile_function<ChromaGrid::k444, Siting::kLeft>(bits);
    case ChromaGrid::k422:  // where top-left is left
      return centre ? tile_function<ChromaGrid::k422, Siting::kCenter>(bits)
                    : tile_function<ChromaGrid::k422, Siting::kLeft>(bits);
    default:
      if (centre) return tile_function<ChromaGrid::k420, Siting::kCenter>(bits);
      return plan.siting == Siting::kTopLeft
                 ? tile_function<ChromaGrid::k420, Siting::kTopLeft>(bits)
                 : tile_function<ChromaGrid::k420, Siting::kLeft>(bits);
  }
}

// A vector of pixels at once: first each sixteen bytes get the four words that their pixels are in,
// and then a byte is put behind each pixel. A vector that is read whole goes beyond its pixels, so
// the last ones are copied first.
void widen(const std::uint8_t* from, std::ptrdiff_t ahead, std::uint8_t* to, int count) {
  constexpr int kBytes = 3 * kLanes;
  const U32 d;
  const hn::Repartition<std::uint8_t, U32> d8;
  alignas(64) static constexpr std::int32_t kWords[16] = {0, 1, 2, 3, 3, 4,  5,  6,
                                                          6, 7, 8, 9, 9, 10, 11, 12};
  alignas(16) static constexpr std::uint8_t kPlaces[16] = {0, 1, 2, 0x80, 3, 4,  5,  0x80,
                                                           6, 7, 8, 0x80, 9, 10, 11, 0x80};
  const auto words = hn::IndicesFromVec(d, hn::Load(I32(), kWords));
  const auto places = hn::LoadDup128(d8, kPlaces);
  const auto put_vector = [&](const std::uint8_t* pixels, std::uint8_t* wide) HWY_ATTR {
    auto spread = hn::BitCast(d, hn::LoadU(d8, pixels));
    if constexpr (kLanes > 4) spread = hn::TableLookupLanes(spread, words);
    hn::StoreU(hn::TableLookupBytesOr0(hn::BitCast(d8, spread), places), d8, wide);
  };
  int x = 0;
  for (; 3 * x + kBytesPerPixel * kLanes <= 3 * count; x += kLanes) {
    if (x % 16 == 0) hwy::Prefetch(from + 3 * x + ahead);
    put_vector(from + 3 * x, to + kBytesPerPixel * x);
  }
  for (; x < count; x += kLanes) {
    alignas(64) std::uint8_t last[kBytesPerPixel * kLanes] = {};
    std::memcpy(last, from + 3 * x, kBytes);
    put_vector(last, to + kBytesPerPixel * x);
  }
}

WidenFunction get_widen_function() { return widen; }

#endif  // HWY_TARGET

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace framelane {
namespace {
HWY_EXPORT(get_tile_function);
HWY_EXPORT(get_widen_function);
}  // namespace

TileFunction best_tile_function(const RgbToYuvPlan& plan) {
  return HWY_DYNAMIC_DISPATCH(get_tile_function)(plan);
}

WidenFunction best_widen_function() { return HWY_DYNAMIC_DISPATCH(get_widen_function)(); }

}  // namespace framelane
#endif  // HWY_ONCE
