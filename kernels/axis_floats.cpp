#include "kernels/axis_floats.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace framelane {
namespace {

/// The least common denominator of all weights; 0 if it is above `most`.
std::int64_t common_denominator(const AxisTable& table, std::int64_t most) {
  std::int64_t common = 1;
  for (const std::int64_t denominator : table.denominators()) {
    if (denominator > most) return 0;
    common = std::lcm(common, denominator);
    if (common > most) return 0;
  }
  return common;
}

bool is_copy_of_one(const LinearForm& form) {
  const auto zeros = std::ranges::count(form.coefficients, 0);
  const auto ones = std::ranges::count(form.coefficients, form.denominator);
  return zeros == 2 && ones == 1 && form.offset == 0;
}

}  // namespace

WholeNumbers whole_numbers(const ScaledSamples& samples, std::size_t channel) {
  // Values are multiples of 1 / d, and a quarter of that is added to them, so that ties round up
  // and no value is nearer to a tie than 1 / 4 d. The division and that addition are wrong by less
  // than 3.1e-5; 1 / (4 * 4096) is 6.1e-5. Sums of whole numbers below 2^24 are exact in floats.
  constexpr std::int64_t kMostDivisor = 4096;
  const ScaleTerms& terms = samples.terms(channel);
  const bool copies =
      is_copy_of_one(samples.form(channel)) && (channel == 0 || is_copy_of_one(samples.form(2)));
  if (!copies || terms.size() != 1) return {};
  const WholeNumbers found{common_denominator(terms[0].across, kMostDivisor),
                           common_denominator(terms[0].down, kMostDivisor)};
  const bool small = found.divisor() > 0 && found.divisor() <= kMostDivisor;
  return small ? found : WholeNumbers{};
}

AxisFloats::AxisFloats(const AxisTable& axis, std::int64_t common) : table(axis) {
  const auto taps = static_cast<std::size_t>(table.taps());
  for (std::size_t i = 0; i < table.denominators().size(); ++i) {
    const double scale = static_cast<double>(common != 0 ? common : 1) /
                         static_cast<double>(table.denominators()[i]);
    double sum = 0;
    for (const std::int64_t numerator : table.numerators().subspan(i * taps, taps)) {
      weights.push_back(static_cast<float>(static_cast<double>(numerator) * scale));
      sum += std::abs(static_cast<double>(weights.back()));
    }
    amplitude = std::max(amplitude, sum);
  }
}

}  // namespace framelane
