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
/// The coefficients are rounded, so `value` differs from the true value: the offset keeps it
/// `window` / 2 above the true value on average, and never below. If the fraction of the clamped
/// value is smaller than `window`, the true value may belong to the next lower code: then `exactly`
/// has to be used.
struct FixedForm {
  /// How many samples the form depends on, and which of its three they are.
  std::size_t inputs = 0;
  std::array<std::size_t, 3> input{};
  std::array<std::int32_t, 3> coefficients{};
  std::int32_t offset = 0;
  int fraction_bits = 0;
  /// A power of two; or 0 if every sample was tried and none needs `exactly`.
  std::int32_t window = 0;

  /// The limits of the clamp, in the middle of the lowest and of the highest code: values beyond
  /// them cannot be taken for another code, so they must not fall into the window.
  std::int32_t least() const { return std::int32_t{1} << (fraction_bits - 1); }
  std::int32_t greatest() const { return 511 * least(); }
  /// A mask: these bits are all zero exactly if a value's fraction is below `window`.
  std::int32_t fraction_above_window() const { return 2 * least() - window; }

  /// The exact result, as the reference has it, in 64-bit integers. Takes the `inputs` samples that
  /// the form depends on.
  std::uint8_t exactly(const Samples& samples) const;

  LinearForm exact;
  /// Factors that bring the samples to the scale of `exact`.
  std::array<std::int64_t, 3> scale_up{};
};

/// The form for samples that are scaled by `scales`: each is at most 255 * scale. Of two scales one
/// must divide the other.
FixedForm fixed_form(const LinearForm& form, const std::array<int, 3>& scales);

/// True if the form returns its input `channel` unchanged.
bool is_copy(const LinearForm& form, std::size_t channel);

}  // namespace framelane
