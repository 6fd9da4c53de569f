#include "kernels/rgb_to_yuv420_tile.hpp"

#include <cstddef>
#include <cstring>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once per
// instruction set, by including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rgb_to_yuv420_tile.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace framelane {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::CappedTag<std::uint32_t, kMaxLanes>;
using U32s = hn::Vec<U32>;

// The operations that Highway's one-lane fallback lacks.
#if HWY_TARGET == HWY_SCALAR

U32s load_pixels(const std::uint8_t* pixels) {
  std::uint32_t value;
  std::memcpy(&value, pixels, sizeof(value));
  return hn::Set(U32(), value);
}

U32s multiply_high(U32s a, std::uint32_t b) {
  return hn::Set(U32(), static_cast<std::uint32_t>(std::uint64_t{hn::GetLane(a)} * b >> 32));
}

U32s even_columns(U32s first, U32s) { return first; }
U32s odd_columns(U32s, U32s second) { return second; }

void store_pairs(U32s pairs, std::uint8_t* to) {
  const auto value = static_cast<std::uint16_t>(hn::GetLane(pairs));
  std::memcpy(to, &value, sizeof(value));
}

#else

U32s load_pixels(const std::uint8_t* pixels) {
  const U32 d;
  return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, U32>(), pixels));
}

U32s multiply_high(U32s a, std::uint32_t b) {
  const U32 d;
  const hn::Repartition<std::uint64_t, U32> d64;
  const auto factor = hn::Set(d, b);
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), factor);
  return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

U32s even_columns(U32s first, U32s second) { return hn::ConcatEven(U32(), second, first); }
U32s odd_columns(U32s first, U32s second) { return hn::ConcatOdd(U32(), second, first); }

void store_pairs(U32s pairs, std::uint8_t* to) {
  const hn::Rebind<std::uint16_t, U32> d16;
  const hn::Repartition<std::uint8_t, decltype(d16)> d8;
  const auto narrow = hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<U32>(), pairs));
  hn::StoreU(hn::BitCast(d8, narrow), d8, to);
}

#endif

// ExactQuotient, lane by lane.
U32s evaluate(const ExactQuotient& q, U32s a, U32s b, U32s c) {
  const U32 d;
  const auto numerator = hn::Add(
      hn::Add(hn::Mul(a, hn::Set(d, q.coefficients[0])), hn::Mul(b, hn::Set(d, q.coefficients[1]))),
      hn::Add(hn::Mul(c, hn::Set(d, q.coefficients[2])), hn::Set(d, q.offset)));
  return hn::ShiftRightSame(multiply_high(numerator, q.magic), static_cast<int>(q.shift));
}

// Pixels with the three colour bytes in the low 24 bits; what lies above them varies.
template <bool kAlphaFirst>
U32s load_colors(const std::uint8_t* pixels) {
  const auto loaded = load_pixels(pixels);
  return kAlphaFirst ? hn::ShiftRight<8>(loaded) : loaded;
}

template <bool kAlphaFirst>
void luma_row(const ExactQuotient& luma, const std::uint8_t* source, std::uint8_t* target,
              int count) {
  const U32 d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto byte = hn::Set(d, 0xFF);
  for (int x = 0; x < count; x += lanes) {
    const auto colors = load_colors<kAlphaFirst>(source + x * kBytesPerPixel);
    const auto y = evaluate(luma, hn::And(colors, byte), hn::And(hn::ShiftRight<8>(colors), byte),
                            hn::And(hn::ShiftRight<16>(colors), byte));
    hn::StoreU(hn::U8FromU32(y), hn::Rebind<std::uint8_t, U32>(), target + x);
  }
}

struct Sums {
  U32s outer, inner;
};

template <bool kAlphaFirst>
Sums split_colors(const std::uint8_t* pixels) {
  const U32 d;
  const auto colors = load_colors<kAlphaFirst>(pixels);
  return {hn::And(colors, hn::Set(d, 0x00FF00FF)),
          hn::And(hn::ShiftRight<8>(colors), hn::Set(d, 0xFF))};
}

// [1 1] down rows, or [1 2 1] where chroma sits on the upper row.
template <bool kAlphaFirst, Siting kSiting>
Sums filter_down(const SourceRows& rows, int x) {
  const int at = x * kBytesPerPixel;
  Sums sums = split_colors<kAlphaFirst>(rows.upper + at);
  const Sums lower = split_colors<kAlphaFirst>(rows.lower + at);
  if (kSiting == Siting::kTopLeft) {
    const Sums above = split_colors<kAlphaFirst>(rows.above + at);
    sums.outer = hn::Add(hn::Add(sums.outer, sums.outer), above.outer);
    sums.inner = hn::Add(hn::Add(sums.inner, sums.inner), above.inner);
  }
  return {hn::Add(sums.outer, lower.outer), hn::Add(sums.inner, lower.inner)};
}

template <bool kAlphaFirst, Siting kSiting>
void sum_columns(const SourceRows& rows, int count, ColumnSums& columns) {
  const U32 d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int x = 0; x < count; x += 2 * lanes) {
    const Sums first = filter_down<kAlphaFirst, kSiting>(rows, x);
    const Sums second = filter_down<kAlphaFirst, kSiting>(rows, x + lanes);
    const int i = x / 2;
    hn::Store(even_columns(first.outer, second.outer), d, columns.even_outer.data() + i);
    hn::Store(even_columns(first.inner, second.inner), d, columns.even_inner.data() + i);
    hn::Store(odd_columns(first.outer, second.outer), d, columns.odd_outer.data() + kMaxLanes + i);
    hn::Store(odd_columns(first.inner, second.inner), d, columns.odd_inner.data() + kMaxLanes + i);
  }
}

// [1 2 1] across columns, or [1 1] where chroma sits between them. No sum exceeds 255 * 16, so the
// two in one 32-bit lane do not touch.
template <Siting kSiting>
U32s filter_across(const std::uint32_t* even, const std::uint32_t* odd, int i) {
  const U32 d;
  const auto centre = hn::Load(d, even + i);
  const auto right = hn::Load(d, odd + kMaxLanes + i);
  if (kSiting == Siting::kCenter) return hn::Add(centre, right);
  const auto left = hn::LoadU(d, odd + kMaxLanes + i - 1);
  return hn::Add(hn::Add(centre, centre), hn::Add(left, right));
}

template <Siting kSiting>
void chroma_row(const RgbToYuv420Plan& plan, const ColumnSums& columns, const TargetRows& target,
                int count) {
  const U32 d;
  const hn::RebindToSigned<U32> d32;
  const hn::Rebind<std::uint8_t, U32> d8;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < count; i += lanes) {
    const auto outer =
        filter_across<kSiting>(columns.even_outer.data(), columns.odd_outer.data(), i);
    const auto inner =
        filter_across<kSiting>(columns.even_inner.data(), columns.odd_inner.data(), i);
    const auto first = hn::And(outer, hn::Set(d, 0xFFFF));
    const auto third = hn::ShiftRight<16>(outer);
    // In full range a pure blue or red rounds up to 256: both ways of storing clamp.
    const auto u = evaluate(plan.u, first, inner, third);
    const auto v = evaluate(plan.v, first, inner, third);
    if (target.v == nullptr) {
      const auto white = hn::Set(d, 255);
      const auto pair = hn::Or(hn::Min(u, white), hn::ShiftLeft<8>(hn::Min(v, white)));
      store_pairs(pair, target.u + 2 * i);
    } else {
      hn::StoreU(hn::DemoteTo(d8, hn::BitCast(d32, u)), d8, target.u + i);
      hn::StoreU(hn::DemoteTo(d8, hn::BitCast(d32, v)), d8, target.v + i);
    }
  }
}

template <bool kAlphaFirst, Siting kSiting>
void convert_tile(const RgbToYuv420Plan& plan, const SourceRows& source, const TargetRows& target,
                  int count, bool leftmost, ColumnSums& columns) {
  luma_row<kAlphaFirst>(plan.luma, source.upper, target.upper, count);
  if (target.lower != nullptr) {
    luma_row<kAlphaFirst>(plan.luma, source.lower, target.lower, count);
  }
  sum_columns<kAlphaFirst, kSiting>(source, count, columns);
  if (leftmost) {
    columns.odd_outer[kMaxLanes - 1] = columns.even_outer[0];
    columns.odd_inner[kMaxLanes - 1] = columns.even_inner[0];
  }
  chroma_row<kSiting>(plan, columns, target, count / 2);
  const auto last = static_cast<std::size_t>(kMaxLanes + count / 2 - 1);
  columns.odd_outer[kMaxLanes - 1] = columns.odd_outer[last];
  columns.odd_inner[kMaxLanes - 1] = columns.odd_inner[last];
}

template <bool kAlphaFirst>
void convert_tile_sited(const RgbToYuv420Plan& plan, const SourceRows& source,
                        const TargetRows& target, int count, bool leftmost, ColumnSums& columns) {
  switch (plan.siting) {
    case Siting::kLeft:
      return convert_tile<kAlphaFirst, Siting::kLeft>(plan, source, target, count, leftmost,
                                                      columns);
    case Siting::kCenter:
      return convert_tile<kAlphaFirst, Siting::kCenter>(plan, source, target, count, leftmost,
                                                        columns);
    case Siting::kTopLeft:
      return convert_tile<kAlphaFirst, Siting::kTopLeft>(plan, source, target, count, leftmost,
                                                         columns);
  }
}

void ConvertTile(const RgbToYuv420Plan& plan, const SourceRows& source, const TargetRows& target,
                 int count, bool leftmost, ColumnSums& columns) {
  if (plan.alpha_first) {
    convert_tile_sited<true>(plan, source, target, count, leftmost, columns);
  } else {
    convert_tile_sited<false>(plan, source, target, count, leftmost, columns);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace framelane {
namespace {
HWY_EXPORT(ConvertTile);
}  // namespace

TileFunction best_tile_function() { return HWY_DYNAMIC_DISPATCH(ConvertTile); }

}  // namespace framelane
#endif  // HWY_ONCE
