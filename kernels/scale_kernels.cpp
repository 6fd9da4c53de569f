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

using Floats = hn::CappedTag<float, kMostRows>;
using FloatVector = hn::Vec<Floats>;
using Four = hn::Full128<float>;

constexpr std::size_t kLanes = hn::MaxLanes(Floats());

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

// kVectors at once, so that sums need not wait for each other.
template <std::size_t kVectors>
HWY_INLINE void sum_down(const float* from, std::size_t pitch, const float* weights, int taps,
                         bool adds, float* to) {
  const Floats d;
  FloatVector sums[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    sums[v] = adds ? hn::LoadU(d, to + v * kLanes) : hn::Zero(d);
  }
  for (int j = 0; j < taps; ++j, from += pitch) {
    const auto weight = hn::Set(d, weights[j]);
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(d, from + v * kLanes), sums[v]);
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, to + v * kLanes);
}

void filter_down(const float* from, std::size_t pitch, const float* weights, int taps, bool adds,
                 float* to, std::size_t count) {
  constexpr std::size_t kVectors = 4;
  std::size_t x = 0;
  for (; x + kVectors * kLanes <= count; x += kVectors * kLanes) {
    sum_down<kVectors>(from + x, pitch, weights, taps, adds, to + x);
  }
  for (; x < count; x += kLanes) sum_down<1>(from + x, pitch, weights, taps, adds, to + x);
}

void transpose(const float* const* from, float* to, std::size_t count) {
  const Four d;
  for (std::size_t x = 0; x < count; x += 4) {
    for (std::size_t r = 0; r < kLanes; r += 4) {
      const auto a = hn::LoadU(d, from[r] + x);
      const auto b = hn::LoadU(d, from[r + 1] + x);
      const auto c = hn::LoadU(d, from[r + 2] + x);
      const auto e = hn::LoadU(d, from[r + 3] + x);
      const hn::Repartition<double, Four> pairs;
      const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
      const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
      const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      float* const column = to + x * kLanes + r;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, column);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, column + kLanes);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d,
                 column + 2 * kLanes);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d,
                 column + 3 * kLanes);
    }
  }
}

void filter_across(const float* from, std::int32_t begin, const std::int32_t* first,
                   const float* weights, int taps, float* to, std::size_t count) {
  const Floats d;
  for (std::size_t i = 0; i < count; ++i) {
    const float* column = from + (first[i] - begin) * std::ptrdiff_t{kLanes};
    const float* const weight = weights + i * static_cast<std::size_t>(taps);
    auto even = hn::Mul(hn::Set(d, weight[0]), hn::LoadU(d, column));
    auto odd = hn::Zero(d);
    int j = 1;
    for (; j + 1 < taps; j += 2) {
      odd =
          hn::MulAdd(hn::Set(d, weight[j]), hn::LoadU(d, column + j * std::ptrdiff_t{kLanes}), odd);
      even = hn::MulAdd(hn::Set(d, weight[j + 1]),
                        hn::LoadU(d, column + (j + 1) * std::ptrdiff_t{kLanes}), even);
    }
    if (j < taps) {
      odd =
          hn::MulAdd(hn::Set(d, weight[j]), hn::LoadU(d, column + j * std::ptrdiff_t{kLanes}), odd);
    }
    hn::StoreU(hn::Add(even, odd), d, to + i * kLanes);
  }
}

// Sixteen columns of codes become rows. Interleaving a matrix's halves moves the highest bit of
// each byte's number to the lowest; after four times the columns' numbers are the bytes' places.
HWY_INLINE void transpose_codes(const std::uint8_t* from, std::uint8_t* to, std::ptrdiff_t pitch) {
  const hn::Full128<std::uint8_t> d;
  hn::Vec<decltype(d)> a[kLanes];
  hn::Vec<decltype(d)> b[kLanes];
  const auto interleave = [d](const auto* in, auto* out) HWY_ATTR {
    for (std::size_t i = 0; i < kLanes / 2; ++i) {
      out[2 * i] = hn::InterleaveLower(d, in[i], in[i + kLanes / 2]);
      out[2 * i + 1] = hn::InterleaveUpper(d, in[i], in[i + kLanes / 2]);
    }
  };
  for (std::size_t i = 0; i < kLanes; ++i) a[i] = hn::LoadU(d, from + 16 * i);
  interleave(a, b);
  interleave(b, a);
  interleave(a, b);
  interleave(b, a);
  for (std::size_t i = 0; i < kLanes; ++i) {
    hn::StoreU(a[i], d, to + static_cast<std::ptrdiff_t>(i) * pitch);
  }
}

template <std::size_t kInputs>
HWY_INLINE std::size_t codes_of(const ScaleForm& form, const std::array<const float*, 3>& columns,
                                std::uint8_t* to, std::ptrdiff_t pitch, std::size_t count,
                                std::uint16_t* doubtful) {
  constexpr std::size_t kColumns = 16;
  const Floats d;
  const hn::Rebind<std::uint32_t, Floats> words;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const auto offset = hn::Set(d, form.offset);
  const auto doubt = hn::Set(d, form.doubt);
  const auto greatest = hn::Set(d, 255.0F);
  // What is added to it is rounded to whole numbers, which are the lowest bits of the sum.
  const auto whole_bits = hn::Set(d, 0x1p23F);
  std::size_t found = 0;
  for (std::size_t x = 0; x < count; x += kColumns) {
    alignas(64) std::uint8_t turned[kColumns * kLanes] = {};
    const std::size_t end = x + kColumns < count ? x + kColumns : count;
    auto farthest = hn::Zero(d);
    const auto away_from_code = [&](FloatVector value, FloatVector sum) HWY_ATTR {
      return hn::Abs(hn::Sub(value, hn::Sub(sum, whole_bits)));
    };
    const auto value_of = [&](std::size_t i) HWY_ATTR {
      auto value = offset;
      for (std::size_t k = 0; k < kInputs; ++k) {
        value =
            hn::MulAdd(hn::Set(d, form.factors[k]), hn::LoadU(d, columns[k] + i * kLanes), value);
      }
      return hn::Min(hn::Max(value, hn::Zero(d)), greatest);
    };
    for (std::size_t i = x; i < end; ++i) {
      const auto value = value_of(i);
      const auto sum = hn::Add(value, whole_bits);
      farthest = hn::Max(farthest, away_from_code(value, sum));
      const auto code = hn::And(hn::BitCast(words, sum), hn::Set(words, 0xFF));
      hn::StoreU(hn::U8FromU32(code), bytes, turned + (i - x) * kLanes);
    }
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Ge(farthest, doubt)))) {
      for (std::size_t i = x; i < end; ++i) {
        const auto value = value_of(i);
        alignas(64) float away[kLanes];
        hn::Store(away_from_code(value, hn::Add(value, whole_bits)), d, away);
        for (std::size_t r = 0; r < kLanes; ++r) {
          if (away[r] >= form.doubt) {
            doubtful[found++] = static_cast<std::uint16_t>(i * kLanes + r);
          }
        }
      }
    }
    transpose_codes(turned, to + x, pitch);
  }
  return found;
}

std::size_t codes(const ScaleForm& form, const std::array<const float*, 3>& columns,
                  std::uint8_t* to, std::ptrdiff_t pitch, std::size_t count,
                  std::uint16_t* doubtful) {
  switch (form.inputs) {
    case 1:
      return codes_of<1>(form, columns, to, pitch, count, doubtful);
    case 2:
      return codes_of<2>(form, columns, to, pitch, count, doubtful);
    default:
      return codes_of<3>(form, columns, to, pitch, count, doubtful);
  }
}

const ScaleKernels* get_scale_kernels() {
  static constexpr ScaleKernels kKernels{
      static_cast<int>(kLanes), load, filter_down, transpose, filter_across, codes};
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
