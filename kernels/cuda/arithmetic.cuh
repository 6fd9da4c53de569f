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

/// The start of row y, if rows are `pitch` bytes apart.
template <typename Byte>
FRAMELANE_HD Byte* row_at(Byte* first, int y, int pitch) {
#ifdef __CUDA_ARCH__
  // Where nvcc knows that y is not negative, it multiplies with 64 bits, in several instructions.
  std::int64_t offset;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(offset) : "r"(y), "r"(pitch));
  return first + offset;
#else
  return first + static_cast<std::ptrdiff_t>(y) * pitch;
#endif
}

/// The 32 bits from bit `shift` (0..31) of the 64-bit number whose halves are `low` and `high`.
FRAMELANE_HD std::uint32_t funnel(std::uint32_t low, std::uint32_t high, unsigned shift) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> shift);
#endif
}

/// Byte i of a word.
FRAMELANE_HD int byte_of(std::uint32_t word, int i) {
  return static_cast<int>(word >> (8 * i) & 0xFF);
}

/// Four of the eight bytes of a (0 to 3) and b (4 to 7): those that the digits of kPlaces name, the
/// last digit first.
template <unsigned kPlaces>
FRAMELANE_HD std::uint32_t bytes_at(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, kPlaces);
#else
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned place = kPlaces >> (4 * i) & 0xF;
    result |= static_cast<std::uint32_t>(both >> (8 * place) & 0xFF) << (8 * i);
  }
  return result;
#endif
}

/// The byte of a word that `selector` names: 0x4440 for the lowest one, up to 0x4443.
FRAMELANE_HD std::uint32_t byte_at(std::uint32_t word, unsigned selector) {
#ifdef __CUDA_ARCH__
  std::uint32_t byte;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(byte) : "r"(word), "r"(selector));
  return byte;
#else
  return word >> (8 * (selector & 3)) & 0xFF;
#endif
}

/// Bytes 0 and 2 (kFirst = 0) or 1 and 3 (kFirst = 1) of a, and then of b.
template <int kFirst>
FRAMELANE_HD std::uint32_t every_other(std::uint32_t a, std::uint32_t b) {
  return bytes_at < kFirst == 0 ? 0x6420 : 0x7531 > (a, b);
}

/// The values, each clamped to 0..255, as bytes 0 to 3.
FRAMELANE_HD std::uint32_t saturated(int a, int b, int c, int d) {
#ifdef __CUDA_ARCH__
  std::uint32_t high, result;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(b), "r"(a), "r"(high));
  return result;
#else
  const auto byte = [](int value) {
    return static_cast<std::uint32_t>(at_most(at_least(value, 0), 255));
  };
  return byte(a) | byte(b) << 8 | byte(c) << 16 | byte(d) << 24;
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
