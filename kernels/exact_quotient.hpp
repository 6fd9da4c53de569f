#pragma once

#include <array>
#include <cstdint>

#include "kernels/linear_transform.hpp"

namespace framelane {

/// A LinearForm, rounded half up, in 32-bit arithmetic. For samples a, b and c:
///   n = coefficients · (a, b, c) + offset   (modulo 2^32; the true value is never negative)
///   result = high32(n * magic) >> shift     (equal to floor(n / divisor))
struct ExactQuotient {
  std::array<std::uint32_t, 3> coefficients{};
  std::uint32_t offset = 0;
  std::uint32_t magic = 0;
  std::uint32_t shift = 0;
  std::uint32_t divisor = 1;

  /// The quotient is exact for numerators below this, which give results up to 256.
  std::uint64_t numerator_limit() const { return std::uint64_t{257} * divisor; }

  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return divide(coefficients[0] * a + coefficients[1] * b + coefficients[2] * c + offset);
  }
  std::uint32_t divide(std::uint32_t numerator) const {
    return static_cast<std::uint32_t>(std::uint64_t{numerator} * magic >> 32) >> shift;
  }
};

/// The quotient for weighted sums of samples, whose weights add up to `scale`. Requires that the
/// form's value lies in 0..256 for all samples, and that its denominator, after scaling and
/// reducing, is below 2^24.
ExactQuotient exact_quotient(const LinearForm& form, int scale);

}  // namespace framelane
