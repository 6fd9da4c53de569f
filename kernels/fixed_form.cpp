#include "kernels/fixed_form.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace framelane {
namespace {

constexpr int kMaxSample = 255;

// A bound of the value's magnitude for samples 0..255, with the half that rounding adds.
long double largest_value(const LinearForm& form) {
  long double low = static_cast<long double>(form.offset);
  long double high = low;
  for (const std::int64_t c : form.coefficients) {
    (c < 0 ? low : high) += static_cast<long double>(c) * kMaxSample;
  }
  return std::max(-low, high) / static_cast<long double>(form.denominator) + 1;
}

// Rounded to nearest. The error of the division is far below the unit that `window` has to spare.
std::int32_t to_fixed(std::int64_t numerator, std::int64_t denominator, int bits) {
  return static_cast<std::int32_t>(std::llround(std::ldexp(
      static_cast<long double>(numerator) / static_cast<long double>(denominator), bits)));
}

std::uint8_t evaluate(const FixedForm& form, std::int32_t sample) {
  const auto value = static_cast<std::int32_t>(static_cast<std::uint32_t>(form.coefficients[0]) *
                                                   static_cast<std::uint32_t>(sample) +
                                               static_cast<std::uint32_t>(form.offset));
  return static_cast<std::uint8_t>(std::clamp(value, form.least(), form.greatest()) >>
                                   form.fraction_bits);
}

bool exact_everywhere(const FixedForm& form, std::int32_t max_sample) {
  for (std::int32_t sample = 0; sample <= max_sample; ++sample) {
    if (evaluate(form, sample) != form.exactly({sample, 0, 0})) return false;
  }
  return true;
}

// Looks for constants that need no window, by trying all samples: a form with one input has few.
// There ties are common (the mean of two samples), so that values would fall into a window all the
// time.
bool prove(FixedForm& form, const LinearForm& scaled, std::int32_t max_sample) {
  const std::int64_t denominator = scaled.denominator;
  for (int bits = form.fraction_bits; bits >= 12; --bits) {
    FixedForm candidate = form;
    candidate.window = 0;
    candidate.fraction_bits = bits;
    const std::int32_t nearest = to_fixed(scaled.coefficients[form.input[0]], denominator, bits);
    const std::int32_t offset = to_fixed(scaled.offset, denominator, bits);
    for (const std::int32_t coefficient : {nearest, nearest + 1, nearest - 1}) {
      candidate.coefficients[0] = coefficient;
      // Offsets that spread the coefficient's error over both sides.
      const std::int64_t drift =
          (to_fixed(scaled.coefficients[form.input[0]] * max_sample, denominator, bits) -
           static_cast<std::int64_t>(coefficient) * max_sample);
      for (const std::int64_t shift : {std::int64_t{1}, drift + 1, drift / 2 + 1}) {
        candidate.offset = static_cast<std::int32_t>(offset + shift);
        if (!exact_everywhere(candidate, max_sample)) continue;
        form = candidate;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::uint8_t FixedForm::exactly(const Samples& samples) const {
  Samples scaled{};
  for (std::size_t i = 0; i < inputs; ++i) scaled[input[i]] = samples[i] * scale_up[i];
  return exact.floor_to_byte(scaled);
}

FixedForm fixed_form(const LinearForm& form, const std::array<int, 3>& scales) {
  FixedForm result;
  int common = 1;
  int max_sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (form.coefficients[i] == 0) continue;
    result.input[result.inputs++] = i;
    common = std::max(common, scales[i]);
    max_sum += kMaxSample * scales[i];
  }
  assert(result.inputs > 0);
  result.exact = form.rounding_for_scale(common);

  constexpr int kMostBits = 23;  // so that 255.5 fits
  result.fraction_bits = kMostBits;
  while (std::ldexp(largest_value(form), result.fraction_bits) >= 0x1p31L) --result.fraction_bits;
  for (std::size_t i = 0; i < result.inputs; ++i) {
    const std::size_t channel = result.input[i];
    assert(common % scales[channel] == 0);
    result.scale_up[i] = common / scales[channel];
    result.coefficients[i] = to_fixed(form.coefficients[channel],
                                      form.denominator * scales[channel], result.fraction_bits);
  }
  if (result.inputs == 1 && prove(result, result.exact, kMaxSample * common)) return result;

  // Each coefficient is wrong by half a unit at most, and so is the offset: by (max_sum + 1) / 2 in
  // all.
  result.window = static_cast<std::int32_t>(std::bit_ceil(static_cast<unsigned>(max_sum + 2)));
  result.offset = to_fixed(result.exact.offset, result.exact.denominator, result.fraction_bits) +
                  result.window / 2;
  return result;
}

bool is_copy(const LinearForm& form, std::size_t channel) {
  LinearForm copy;
  copy.coefficients[channel] = form.denominator;
  copy.denominator = form.denominator;
  return form.coefficients == copy.coefficients && form.offset == 0;
}

}  // namespace framelane
