#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/kernel.hpp"
#include "kernels/exact_quotient.hpp"
#include "kernels/linear_transform.hpp"

// What kernel bodies compute with. It gives the same bytes on the GPU and on the host.

namespace framelane::cuda {

/// Loads a value, whose address must have its natural alignment.
template <typename T>
FRAMELANE_HD T load(const std::uint8_t* at) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const T*>(at);
#else
  assert(reinterpret_cast<std::uintptr_t>(at) % sizeof(T) == 0);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
#endif
}

template <typename T>
FRAMELANE_HD void store(std::uint8_t* at, T value) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<T*>(at) = value;
#else
  assert(reinterpret_cast<std::uintptr_t>(at) % sizeof(T) == 0);
  std::memcpy(at, &value, sizeof value);
#endif
}

FRAMELANE_HD int at_most(int value, int limit) { return value < limit ? value : limit; }
FRAMELANE_HD int at_least(int value, int limit) { return value > limit ? value : limit; }

/// The 32 bits from bit `shift` (0..31) of the 64-bit number whose halves are `low` and `high`.
FRAMELANE_HD std::uint32_t funnel(std::uint32_t low, std::uint32_t high, unsigned shift) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> shift);
#endif
}

/// ExactQuotient (kernels/exact_quotient.hpp) as a kernel's parameter.
struct Quotient {
  std::uint32_t coefficients[3];
  std::uint32_t offset;
  std::uint32_t magic;
  std::uint32_t shift;

  FRAMELANE_HD std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    const std::uint32_t numerator =
        coefficients[0] * a + coefficients[1] * b + coefficients[2] * c + offset;
#ifdef __CUDA_ARCH__
    return __umulhi(numerator, magic) >> shift;
#else
    return static_cast<std::uint32_t>(std::uint64_t{numerator} * magic >> 32) >> shift;
#endif
  }
};

/// A quotient whose coefficients are in the order of a pixel's colour bytes in memory: red first or
/// blue first.
inline Quotient make_quotient(const LinearForm& form, int scale, bool blue_first) {
  const ExactQuotient exact = exact_quotient(form, scale);
  const auto& [red, green, blue] = exact.coefficients;
  return {{blue_first ? blue : red, green, blue_first ? red : blue},
          exact.offset,
          exact.magic,
          exact.shift};
}

/// LinearForm (kernels/linear_transform.hpp) as a kernel's parameter, with any coefficients.
struct Form {
  std::int64_t coefficients[3];
  std::int64_t offset;
  std::int64_t denominator;
  float reciprocal;

  /// The value, rounded down and clamped to 0..255. Samples may be up to 255 * 256.
  FRAMELANE_HD std::uint8_t operator()(int a, int b, int c) const {
    return quotient(coefficients[0] * a + coefficients[1] * b + coefficients[2] * c + offset);
  }
  /// The same for a form that depends on one channel only.
  FRAMELANE_HD std::uint8_t of_one(int channel, int sample) const {
    return quotient(coefficients[channel] * sample + offset);
  }

  FRAMELANE_HD std::uint8_t quotient(std::int64_t numerator) const {
    if (numerator < denominator) return 0;
    if (numerator >= 255 * denominator) return 255;
    // Three roundings of 2^-24 each make a result below 255 wrong by less than one. The rest shows
    // in which direction.
    const int estimate = static_cast<int>(static_cast<float>(numerator) * reciprocal);
    const std::int64_t rest = numerator - estimate * denominator;
    return static_cast<std::uint8_t>(estimate + (rest >= denominator) - (rest < 0));
  }
};

inline Form make_form(const LinearForm& form) {
  return {{form.coefficients[0], form.coefficients[1], form.coefficients[2]},
          form.offset,
          form.denominator,
          1.0F / static_cast<float>(form.denominator)};
}

}  // namespace framelane::cuda
