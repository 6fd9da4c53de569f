#include "kernels/row_kernels.hpp"

#include <cstring>
#include <utility>

// Highway includes this file once for each instruction set, and compiles what stands between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE for it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_kernels.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>

#include "kernels/line_vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace framelane {
namespace {
namespace HWY_NAMESPACE {

std::int64_t get_target() { return HWY_TARGET; }

// The one-lane fallback lacks operations that are used below: there the reference converts.
#if HWY_TARGET == HWY_SCALAR

const RowKernels* get_row_kernels() { return nullptr; }

#else

using Ints = hn::CappedTag<std::int32_t, 16>;

template <std::size_t kChannels, class Split>
HWY_INLINE void split(const std::uint8_t* from, std::size_t count, Split split_vectors) {
  const Bytes d;
  for_each_vector(d, count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const std::uint8_t* at = from + kChannels * i;
    std::uint8_t packed[kChannels * hn::MaxLanes(d)];
    if (n < hn::Lanes(d)) {
      std::memset(packed, 0, sizeof packed);
      std::memcpy(packed, at, kChannels * n);
      at = packed;
    }
    split_vectors(at, i, n);
  });
}

void split2(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::size_t count) {
  split<2>(from, count, [&](const std::uint8_t* at, std::size_t i, std::size_t n) HWY_ATTR {
    const Bytes d;
    hn::Vec<Bytes> v0, v1;
    hn::LoadInterleaved2(d, at, v0, v1);
    store(v0, d, a + i, n);
    store(v1, d, b + i, n);
  });
}

void split3(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::uint8_t* c,
            std::size_t count) {
  split<3>(from, count, [&](const std::uint8_t* at, std::size_t i, std::size_t n) HWY_ATTR {
    const Bytes d;
    hn::Vec<Bytes> v0, v1, v2;
    hn::LoadInterleaved3(d, at, v0, v1, v2);
    store(v0, d, a + i, n);
    store(v1, d, b + i, n);
    store(v2, d, c + i, n);
  });
}

void split4(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::uint8_t* c,
            std::uint8_t* e, std::size_t count) {
  split<4>(from, count, [&](const std::uint8_t* at, std::size_t i, std::size_t n) HWY_ATTR {
    const Bytes d;
    hn::Vec<Bytes> v0, v1, v2, v3;
    hn::LoadInterleaved4(d, at, v0, v1, v2, v3);
    store(v0, d, a + i, n);
    store(v1, d, b + i, n);
    store(v2, d, c + i, n);
    store(v3, d, e + i, n);
  });
}

template <std::size_t kChannels, class Merge>
HWY_INLINE void merge(std::uint8_t* to, std::size_t count, Merge merge_vectors) {
  const Bytes d;
  for_each_vector(d, count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    std::uint8_t* at = to + kChannels * i;
    if (n == hn::Lanes(d)) return merge_vectors(at, i, n);
    std::uint8_t packed[kChannels * hn::MaxLanes(d)];
    merge_vectors(packed, i, n);
    std::memcpy(at, packed, kChannels * n);
  });
}

void merge2(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* to, std::size_t count) {
  merge<2>(to, count, [&](std::uint8_t* at, std::size_t i, std::size_t n) HWY_ATTR {
    const Bytes d;
    hn::StoreInterleaved2(load(d, a + i, n), load(d, b + i, n), d, at);
  });
}

void merge3(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, std::uint8_t* to,
            std::size_t count) {
  merge<3>(to, count, [&](std::uint8_t* at, std::size_t i, std::size_t n) HWY_ATTR {
    const Bytes d;
    hn::StoreInterleaved3(load(d, a + i, n), load(d, b + i, n), load(d, c + i, n), d, at);
  });
}

template <std::size_t kRows>
void filter_rows(const WeightedRows& rows, std::uint16_t* to, std::size_t count) {
  const Shorts d;
  const hn::Rebind<std::uint8_t, Shorts> d8;
  for_each_vector(d, count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::size_t j = 0; j < kRows; ++j) {
      const auto weight = hn::Set(d, static_cast<std::uint16_t>(rows.weight[j]));
      const auto samples = hn::PromoteTo(d, load(d8, rows.row[j] + i, n));
      sum = hn::Add(sum, hn::Mul(samples, weight));
    }
    store(sum, d, to + i, n);
  });
}

void filter_down(const WeightedRows& rows, std::uint16_t* to, std::size_t count) {
  switch (rows.count) {
    case 1:
      return filter_rows<1>(rows, to, count);
    case 2:
      return filter_rows<2>(rows, to, count);
    default:
      return filter_rows<3>(rows, to, count);
  }
}

void filter_across(const std::uint16_t* from, int stride, const std::array<int, 3>& weight,
                   std::uint16_t* to, std::size_t count) {
  const Shorts d;
  const auto before = hn::Set(d, static_cast<std::uint16_t>(weight[0]));
  const auto centre = hn::Set(d, static_cast<std::uint16_t>(weight[1]));
  const auto behind = hn::Set(d, static_cast<std::uint16_t>(weight[2]));
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::Vec<Shorts> left, middle, right;
    if (stride == 1) {
      left = hn::LoadU(d, from + i - 1);
      middle = hn::LoadU(d, from + i);
      right = hn::LoadU(d, from + i + 1);
    } else {
      hn::Vec<Shorts> unused;
      hn::LoadInterleaved2(d, from + 2 * i - 1, left, unused);
      hn::LoadInterleaved2(d, from + 2 * i, middle, right);
    }
    hn::StoreU(
        hn::Add(hn::Mul(middle, centre), hn::Add(hn::Mul(left, before), hn::Mul(right, behind))), d,
        to + i);
  }
}

void interpolate(const std::uint16_t* from, const std::array<int, 2>& even,
                 const std::array<int, 2>& odd, std::uint16_t* to, std::size_t count) {
  const Shorts d;
  const auto set = [](int weight)
                       HWY_ATTR { return hn::Set(Shorts(), static_cast<std::uint16_t>(weight)); };
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto left = hn::LoadU(d, from + i - 1);
    const auto here = hn::LoadU(d, from + i);
    const auto right = hn::LoadU(d, from + i + 1);
    hn::StoreInterleaved2(hn::Add(hn::Mul(left, set(even[0])), hn::Mul(here, set(even[1]))),
                          hn::Add(hn::Mul(here, set(odd[0])), hn::Mul(right, set(odd[1]))), d,
                          to + 2 * i);
  }
}

std::int64_t sample_at(const Line& line, std::size_t i) {
  return line.samples != nullptr ? line.samples[i] : line.sums[i];
}

// Computes again, exactly, the lanes whose bits are set: their values are inside the window.
HWY_NOINLINE void recompute(const FixedForm& form, const std::array<Line, 3>& lines, std::size_t at,
                            std::uint64_t bits, std::uint8_t* to) {
  for (; bits != 0; bits &= bits - 1) {
    const std::size_t i = at + hwy::Num0BitsBelowLS1Bit_Nonzero64(bits);
    Samples samples{};
    for (std::size_t k = 0; k < form.inputs; ++k) samples[k] = sample_at(lines[k], i);
    to[i] = form.exactly(samples);
  }
}

template <bool kSums>
HWY_INLINE hn::Vec<Ints> load_ints(const Line& line, std::size_t i, std::size_t n) {
  const Ints d;
  if constexpr (kSums) {
    return hn::PromoteTo(d, load(hn::Rebind<std::uint16_t, Ints>(), line.sums + i, n));
  } else {
    return hn::PromoteTo(d, load(hn::Rebind<std::uint8_t, Ints>(), line.samples + i, n));
  }
}

// kSums: for each input, whether it is a line of sums.
template <bool kWindow, bool... kSums>
struct Evaluate {
  template <std::size_t... kInputs>
  static void run(const FixedForm& form, const std::array<Line, 3>& lines, std::uint8_t* to,
                  std::size_t count, std::index_sequence<kInputs...>) {
    const Ints d;
    const hn::Rebind<std::uint8_t, Ints> d8;
    const auto offset = hn::Set(d, form.offset);
    const auto least = hn::Set(d, form.least());
    const auto greatest = hn::Set(d, form.greatest());
    const auto fraction = hn::Set(d, form.fraction_above_window());
    const hn::Vec<Ints> coefficients[] = {hn::Set(d, form.coefficients[kInputs])...};
    for_each_vector(d, count, [&](std::size_t i, std::size_t n) HWY_ATTR {
      auto value = offset;
      ((value =
            hn::Add(value, hn::Mul(load_ints<kSums>(lines[kInputs], i, n), coefficients[kInputs]))),
       ...);
      value = hn::Min(hn::Max(value, least), greatest);
      const auto codes = hn::ShiftRightSame(value, form.fraction_bits);
      store(hn::U8FromU32(hn::BitCast(hn::RebindToUnsigned<Ints>(), codes)), d8, to + i, n);
      if constexpr (kWindow) {
        const auto near = hn::Eq(hn::And(value, fraction), hn::Zero(d));
        if (HWY_UNLIKELY(!hn::AllFalse(d, near))) {
          std::uint8_t mask[8] = {};
          hn::StoreMaskBits(d, near, mask);
          std::uint64_t bits;
          std::memcpy(&bits, mask, sizeof bits);
          recompute(form, lines, i, bits & ((std::uint64_t{1} << n) - 1), to);
        }
      }
    });
  }
};

template <bool... kSums>
void evaluate_lines(const FixedForm& form, const std::array<Line, 3>& lines, std::uint8_t* to,
                    std::size_t count) {
  constexpr auto kInputs = std::make_index_sequence<sizeof...(kSums)>();
  if (form.window == 0) {
    Evaluate<false, kSums...>::run(form, lines, to, count, kInputs);
  } else {
    Evaluate<true, kSums...>::run(form, lines, to, count, kInputs);
  }
}

void evaluate(const FixedForm& form, const std::array<Line, 3>& lines, std::uint8_t* to,
              std::size_t count) {
  const bool first = lines[0].sums != nullptr;
  const bool last = lines[form.inputs - 1].sums != nullptr;
  switch (form.inputs) {
    case 1:
      return first ? evaluate_lines<true>(form, lines, to, count)
                   : evaluate_lines<false>(form, lines, to, count);
    case 2:
      return first ? evaluate_lines<true, true>(form, lines, to, count)
                   : evaluate_lines<false, false>(form, lines, to, count);
    default:
      return first  ? evaluate_lines<true, true, true>(form, lines, to, count)
             : last ? evaluate_lines<false, true, true>(form, lines, to, count)
                    : evaluate_lines<false, false, false>(form, lines, to, count);
  }
}

constexpr RowKernels kRowKernels = {split2,      split3,        split4,      merge2,  merge3,
                                    filter_down, filter_across, interpolate, evaluate};

const RowKernels* get_row_kernels() { return &kRowKernels; }

#endif  // HWY_TARGET

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace framelane
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace framelane {
namespace {
HWY_EXPORT(get_row_kernels);
HWY_EXPORT(get_target);
}  // namespace

const RowKernels* best_row_kernels() { return HWY_DYNAMIC_DISPATCH(get_row_kernels)(); }

std::string_view simd_level() {
  if (best_row_kernels() == nullptr) return "baseline";
  const std::string_view name = hwy::TargetName(HWY_DYNAMIC_DISPATCH(get_target)());
  if (name.starts_with("AVX3")) return "AVX-512";  // with or without later extensions
  return name == "SSE4" ? "SSE4.1" : name;
}

}  // namespace framelane
#endif  // HWY_ONCE
