#include "kernels/exact_quotient.hpp"

#include <cassert>
#include <cstddef>
#include <numeric>

namespace framelane {
namespace {

// Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994), theorem
// 4.2: with magic = ceil(2^k / d) and e = magic * d - 2^k, floor(n * magic / 2^k) = floor(n / d)
// for all n with n * e < 2^k. The smallest shift that is exact keeps the magic below 2^32.
void choose_magic(ExactQuotient& quotient) {
  const std::uint64_t divisor = quotient.divisor;
  for (std::uint32_t shift = 0; shift < 32; ++shift) {
    const std::uint64_t power = std::uint64_t{1} << (32 + shift);
    const std::uint64_t magic = (power + divisor - 1) / divisor;
    if (magic > UINT32_MAX) break;
    const std::uint64_t excess = magic * divisor - power;
    if ((quotient.numerator_limit() - 1) * excess < power) {
      quotient.magic = static_cast<std::uint32_t>(magic);
      quotient.shift = shift;
      return;
    }
  }
  assert(false && "no exact magic for this divisor");
}

}  // namespace

ExactQuotient exact_quotient(const LinearForm& form, int scale) {
  std::int64_t common = form.denominator * scale;
  for (const std::int64_t c : form.coefficients) common = std::gcd(common, c);

  ExactQuotient quotient;
  for (std::size_t i = 0; i < 3; ++i) {
    quotient.coefficients[i] = static_cast<std::uint32_t>(form.coefficients[i] / common);
  }
  // The coefficients and the denominator are divided by their common divisor. The offset, which
  // need not be a multiple of it, may be rounded down: it is added to a whole number, and the
  // quotient is rounded down.
  const std::int64_t twice_offset = (2 * form.offset + form.denominator) * scale;
  assert(twice_offset >= 0);
  const std::int64_t divisor = form.denominator * scale / common;
  assert(divisor < std::int64_t{1} << 24);
  quotient.offset = static_cast<std::uint32_t>(twice_offset / (2 * common));
  quotient.divisor = static_cast<std::uint32_t>(divisor);
  choose_magic(quotient);
  return quotient;
}

}  // namespace framelane
