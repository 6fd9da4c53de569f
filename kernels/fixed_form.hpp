#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/linear_transform.hpp"

namespace framelane {

/// A LinearForm of up to three samples, rounded half up and clamped to a byte, in 32-bit fixed
/// point:
///   value  = coefficients · samples + offset   (modulo 2^32; the true value fits)
///   result = clamp(value) >> fraction_bits
/// The coefficients are rounded, so `value` may lie beside the true one; it is kept `window` / 2
/// above it on average, and never below it. Where the fraction of the clamped value is smaller than
/// `window`, the true value may belong to the next lower code, and `exactly` decides.
struct FixedForm {
  /// How many samples count, and which of the form's three they are.
  std::size_t inputs = 0;
  std::array<std::size_t, 3> input{};
  std::array<std::int32_t, 3> coefficients{};
  std::int32_t offset = 0;
  int fraction_bits = 0;
  /// A power of two, or 0 where every sample was tried and none needs `exactly`.
  std::int32_t window = 0;

  /// Half a code inside the outermost ones: what lies beyond has no other code to be mistaken for.
  std::int32_t least() const { return std::int32_t{1} << (fraction_bits - 1); }
  std::int32_t greatest() const { return 511 * least(); }
  /// The bits that are all zero in values whose fraction is below `window`.
  std::int32_t fraction_above_window() const { return 2 * least() - window; }

  /// The reference's result for the samples that count, in 64-bit integers.
  std::uint8_t exactly(const Samples& samples) const;

  LinearForm exact;
  /// What brings each sample to the scale of `exact`.
  std::array<std::int64_t, 3> scale_up{};
};

/// The form for samples scaled by `scales` (255 * scale each at most; divisors of one another).
FixedForm fixed_form(const LinearForm& form, const std::array<int, 3>& scales);

/// True when the form gives its input `channel` back unchanged.
bool is_copy(const LinearForm& form, std::size_t channel);

}  // namespace framelane
