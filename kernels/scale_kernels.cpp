#include "kernels/scale_kernels.hpp"

#include <cstring>

// Highway includes this file once for each instruction set, and compiles what stands between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE for it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/scale_kernels.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace framelane {
namespace {
namespace HWY_NAMESPACE {

// The one-lane fallback lacks operations that are used below: there the reference converts.
#if HWY_TARGET == HWY_SCALAR

const ScaleKernels* get_scale_kernels() { return nullptr; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using FloatVector = hn::Vec<Floats>;

constexpr std::size_t kLanes = hn::MaxLanes(Floats());
// Vectors that are filtered down at once, so that sums need not wait for each other.
constexpr std::size_t kVectorsDown = 4;

// The lowest byte of each word, as a number.
template <class Words>
HWY_INLINE FloatVector low_bytes(Words words) {
  const hn::Rebind<std::int32_t, Floats> ints;
  const hn::Rebind<std::uint32_t, Floats> unsigned_ints;
  return hn::ConvertTo(
      Floats(), hn::BitCast(ints, hn::And(words, hn::Set(unsigned_ints, std::uint32_t{0xFF}))));
}

// A pixel's numbers; those that the format does not have are 0.
template <int kStep>
HWY_INLINE void load_pixels(const std::uint8_t* from, FloatVector (&numbers)[kStep]) {
  const Floats d;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const hn::Rebind<std::int32_t, Floats> ints;
  const hn::Rebind<std::uint32_t, Floats> words;
  const auto number = [&](auto v) HWY_ATTR { return hn::ConvertTo(d, hn::PromoteTo(ints, v)); };
  if constexpr (kStep == 1) {
    numbers[0] = number(hn::LoadU(bytes, from));
  } else if constexpr (kStep == 3) {
    hn::Vec<decltype(bytes)> a, b, c;
    hn::LoadInterleaved3(bytes, from, a, b, c);
    numbers[0] = number(a);
    numbers[1] = number(b);
    numbers[2] = number(c);
  } else {
    auto pixels = hn::Zero(words);
    if constexpr (kStep == 2) {
      const hn::Rebind<std::uint16_t, Floats> pairs;
      const hn::Repartition<std::uint8_t, decltype(pairs)> all;
      pixels = hn::BitCast(words, hn::PromoteTo(words, hn::BitCast(pairs, hn::LoadU(all, from))));
    } else {
      const hn::Repartition<std::uint8_t, Floats> all;
      pixels = hn::BitCast(words, hn::LoadU(all, from));
    }
    numbers[0] = low_bytes(pixels);
    numbers[1] = low_bytes(hn::ShiftRight<8>(pixels));
    if constexpr (kStep == 4) {
      numbers[2] = low_bytes(hn::ShiftRight<16>(pixels));
      numbers[3] = low_bytes(hn::ShiftRight<24>(pixels));
    }
  }
}

template <int kStep>
HWY_INLINE void load_line(const std::uint8_t* from, const float* factors, float* to,
                          std::size_t count) {
  const Floats d;
  const auto make = [&](const std::uint8_t* pixels, std::size_t x) HWY_ATTR {
    FloatVector numbers[kStep];
    load_pixels<kStep>(pixels, numbers);
    if constexpr (kStep > 1) {
      numbers[0] = hn::Mul(hn::Set(d, factors[0]), numbers[0]);
      for (int i = 1; i < kStep; ++i) {
        numbers[0] = hn::MulAdd(hn::Set(d, factors[i]), numbers[i], numbers[0]);
      }
    }
    hn::StoreU(numbers[0], d, to + x);
  };
  // What lay there before may be numbers that the processor is slow to calculate with.
  const std::size_t end =
      (count + kVectorsDown * kLanes - 1) / (kVectorsDown * kLanes) * (kVectorsDown * kLanes);
  for (std::size_t i = count; i < end; i += kLanes) hn::StoreU(hn::Zero(d), d, to + i);
  std::size_t x = 0;
  for (; x + kLanes <= count; x += kLanes) make(from + x * kStep, x);
  if (x == count) return;
  if (count >= kLanes) {  // some are made again
    make(from + (count - kLanes) * kStep, count - kLanes);
    return;
  }
  std::uint8_t last[kStep * kLanes] = {};
  std::memcpy(last, from + x * kStep, kStep * (count - x));
  make(last, x);
}

void load(const std::uint8_t* from, int step, const float* factors, float* to, std::size_t count) {
  switch (step) {
    case 1:
      return load_line<1>(from, factors, to, count);
    case 2:
      return load_line<2>(from, factors, to, count);
    case 3:
      return load_line<3>(from, factors, to, count);
    default:
      return load_line<4>(from, factors, to, count);
  }
}

HWY_INLINE void sum_down(const float* const* rows, const float* weights, int taps, bool adds,
                         std::size_t x, float* to) {
  const Floats d;
  FloatVector sums[kVectorsDown];
  HWY_UNROLL(4) for (std::size_t v = 0; v < kVectorsDown; ++v) {
    sums[v] = adds ? hn::LoadU(d, to + x + v * kLanes) : hn::Zero(d);
  }
  for (int j = 0; j < taps; ++j) {
    const auto weight = hn::Set(d, weights[j]);
    const float* const from = rows[j] + x;
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectorsDown; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(d, from + v * kLanes), sums[v]);
    }
  }
  HWY_UNROLL(4)
  for (std::size_t v = 0; v < kVectorsDown; ++v) hn::StoreU(sums[v], d, to + x + v * kLanes);
}

void filter_down(const float* const* rows, const float* weights, int taps, bool adds, float* to,
                 std::size_t count) {
  for (std::size_t x = 0; x < count; x += kVectorsDown * kLanes) {
    sum_down(rows, weights, taps, adds, x, to);
  }
}

using IntVector = hn::Vec<hn::Rebind<std::int32_t, Floats> >;

// Lane i is table[at[i]], of a table of 2 * kLanes floats.
HWY_INLINE FloatVector look_up(FloatVector low, FloatVector high, IntVector at) {
#if HWY_TARGET <= HWY_AVX3
  return FloatVector{_mm512_permutex2var_ps(low.raw, at.raw, high.raw)};
#else
  const Floats d;
  const hn::Rebind<std::int32_t, Floats> ints;
  const auto last = hn::Set(ints, static_cast<std::int32_t>(kLanes - 1));
  const auto place = hn::IndicesFromVec(d, hn::And(at, last));
  return hn::IfThenElse(hn::RebindMask(d, hn::Gt(at, last)), hn::TableLookupLanes(high, place),
                        hn::TableLookupLanes(low, place));
#endif
}

// numbers(0) * weights 0 + numbers(1) * weights 1 + …, in two sums that need not wait for each
// other.
template <class Numbers>
HWY_INLINE FloatVector weighted_sum(const Numbers& numbers, const float* weights, int taps) {
  const Floats d;
  auto even = hn::Mul(hn::LoadU(d, weights), numbers(0));
  auto odd = hn::Zero(d);
  int j = 1;
  for (; j + 1 < taps; j += 2) {
    weights += kLanes;
    odd = hn::MulAdd(hn::LoadU(d, weights), numbers(j), odd);
    weights += kLanes;
    even = hn::MulAdd(hn::LoadU(d, weights), numbers(j + 1), even);
  }
  if (j < taps) odd = hn::MulAdd(hn::LoadU(d, weights + kLanes), numbers(j), odd);
  return hn::Add(even, odd);
}

// Sums of kLanes samples, of which sample i needs `taps` floats from `from` + at[i] on. The
// greatest `at` is `reach`.
HWY_INLINE FloatVector sum_across(const float* from, IntVector at, int reach, const float* weights,
                                  int taps) {
  constexpr int kWidth = static_cast<int>(kLanes);
  const Floats d;
  const hn::Rebind<std::int32_t, Floats> ints;
  const auto load = [&](int i) HWY_ATTR { return hn::LoadU(d, from + i); };
  if (reach + taps <= 2 * kWidth) {
    const auto low = load(0);
    const auto high = load(kWidth);
    const auto one = hn::Set(ints, 1);
    at = hn::Sub(at, one);
    return weighted_sum(
        [&](int) HWY_ATTR {
          at = hn::Add(at, one);
          return look_up(low, high, at);
        },
        weights, taps);
  }
  if (reach < 2 * kWidth) {
    return weighted_sum([&](int j) HWY_ATTR { return look_up(load(j), load(j + kWidth), at); },
                        weights, taps);
  }
  const auto last = hn::Set(ints, 2 * kWidth - 1);
  const auto is_high = hn::RebindMask(d, hn::Gt(at, last));
  const auto place = hn::And(at, last);
  return weighted_sum(
      [&](int j) HWY_ATTR {
        const auto low = look_up(load(j), load(j + kWidth), place);
        const auto high = look_up(load(j + 2 * kWidth), load(j + 3 * kWidth), place);
        return hn::IfThenElse(is_high, high, low);
      },
      weights, taps);
}

void filter_across(const float* from, const std::int32_t* first, const float* weights,
                   const std::uint32_t* places, int taps, float* to, std::size_t count) {
  const Floats d;
  const hn::Rebind<std::int32_t, Floats> ints;
  const std::int32_t begin = first[0];
  for (std::size_t x = 0; x < count; x += kLanes) {
    const auto at = hn::Sub(hn::LoadU(ints, first + x), hn::Set(ints, first[x]));
    const int reach = first[x + kLanes - 1] - first[x];
    hn::StoreU(sum_across(from + (first[x] - begin), at, reach, weights + places[x / kLanes], taps),
               d, to + x);
  }
}

void filter_across_far(const float* from, const std::int32_t* first, const float* weights, int taps,
                       float* to, std::size_t count) {
  const Floats d;
  const auto all = static_cast<std::size_t>(taps);
  const std::size_t whole = all / kLanes * kLanes;
  const auto rest = hn::FirstN(d, all - whole);
  for (std::size_t i = 0; i < count; ++i, weights += all) {
    const float* const numbers = from + (first[i] - first[0]);
    // What lies beyond may be no number.
    const auto last = hn::IfThenElseZero(rest, hn::LoadU(d, numbers + whole));
    auto sum = hn::Mul(hn::LoadU(d, weights + whole), last);
    for (std::size_t j = 0; j < whole; j += kLanes) {
      sum = hn::MulAdd(hn::LoadU(d, weights + j), hn::LoadU(d, numbers + j), sum);
    }
    to[i] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

// The lowest byte of each word.
HWY_INLINE auto low_byte_of_each(FloatVector words) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<hn::Rebind<std::uint8_t, Floats> >{
      _mm512_cvtepi32_epi8(_mm512_castps_si512(words.raw))};
#else
  const hn::Rebind<std::uint32_t, Floats> d;
  return hn::U8FromU32(hn::And(hn::BitCast(d, words), hn::Set(d, 0xFF)));
#endif
}

// What is added to it is rounded to whole numbers, which are the lowest bits of the sum.
HWY_INLINE FloatVector whole_bits() { return hn::Set(Floats(), 0x1p23F); }

template <std::size_t kInputs>
HWY_INLINE std::size_t codes_of(const ScaleForm& form, const std::array<const float*, 3>& lines,
                                std::uint8_t* to, std::size_t count, std::uint16_t* doubtful) {
  const Floats d;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const auto offset = hn::Set(d, form.offset);
  const auto doubt = hn::Set(d, form.doubt);
  // In registers: in memory they would be loaded again after each store.
  const auto a = hn::Set(d, form.factors[0]);
  const auto b = hn::Set(d, form.factors[1]);
  const auto c = hn::Set(d, form.factors[2]);
  const float* const line_a = lines[0];
  const float* const line_b = lines[1];
  const float* const line_c = lines[2];
  const auto value_at = [&](std::size_t x) HWY_ATTR {
    auto value = hn::MulAdd(a, hn::LoadU(d, line_a + x), offset);
    if constexpr (kInputs > 1) value = hn::MulAdd(b, hn::LoadU(d, line_b + x), value);
    if constexpr (kInputs > 2) value = hn::MulAdd(c, hn::LoadU(d, line_c + x), value);
    return hn::Min(hn::Max(value, hn::Zero(d)), hn::Set(d, 255.0F));
  };
  std::size_t found = 0;
  for (std::size_t x = 0; x < count; x += kLanes) {
    const auto value = value_at(x);
    const auto sum = hn::Add(value, whole_bits());
    const auto code = low_byte_of_each(sum);
    const std::size_t left = count - x;
    if (HWY_LIKELY(left >= kLanes)) {
      hn::StoreU(code, bytes, to + x);
    } else {
      std::uint8_t last[kLanes];
      hn::StoreU(code, bytes, last);
      std::memcpy(to + x, last, left);
    }
    const auto away = hn::Abs(hn::Sub(value, hn::Sub(sum, whole_bits())));
    if (HWY_LIKELY(hn::AllFalse(d, hn::Ge(away, doubt)))) continue;
    alignas(64) float distances[kLanes];
    hn::Store(away, d, distances);
    for (std::size_t i = 0; i < kLanes && i < left; ++i) {
      if (distances[i] >= form.doubt) doubtful[found++] = static_cast<std::uint16_t>(x + i);
    }
  }
  return found;
}

std::size_t codes(const ScaleForm& form, const std::array<const float*, 3>& lines, std::uint8_t* to,
                  std::size_t count, std::uint16_t* doubtful) {
  switch (form.inputs) {
    case 1:
      return codes_of<1>(form, lines, to, count, doubtful);
    case 2:
      return codes_of<2>(form, lines, to, count, doubtful);
    default:
      return codes_of<3>(form, lines, to, count, doubtful);
  }
}

const ScaleKernels* get_scale_kernels() {
  static constexpr ScaleKernels kKernels{static_cast<int>(kLanes), load, filter_down, filter_across,
                                         filter_across_far,        codes};
  return &kKernels;
}

#endif  // HWY_TARGET

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace framelane {
namespace {
HWY_EXPORT(get_scale_kernels);
}  // namespace

const ScaleKernels* best_scale_kernels() { return HWY_DYNAMIC_DISPATCH(get_scale_kernels)(); }

}  // namespace framelane
#endif  // HWY_ONCE
