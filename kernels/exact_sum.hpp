#pragma once

#include <cstdint>

#include "kernels/wide_int.hpp"

// The exact value of a scaled sample, for the host and for GPUs.

namespace framelane {

/// An AxisTable (kernels/scaled_reference.hpp) wherever it lies: `taps` numerators for each sample.
struct AxisView {
  const std::int32_t* first;
  const std::int64_t* numerators;
  const std::int64_t* denominators;
  int taps;
};

/// Channels of the source that lie on one grid, and the filters that bring them to the target's.
struct TermView {
  int first_channel, channels;
  AxisView across, down;
};

/// A LinearForm (kernels/linear_transform.hpp) of filtered channels.
struct SumForm {
  std::int64_t coefficients[3];
  std::int64_t offset, denominator;
  bool narrow;  ///< no number that is needed has more than 127 bits
};

namespace exact_sum {

template <typename Int>
FRAMELANE_BOTH void multiply_denominators(const TermView& term, int x, int y, Int& number) {
  number *= term.across.denominators[x];
  number *= term.down.denominators[y];
}

/// Where one thread makes a sum alone.
struct Alone {
  static constexpr int kThreads = 1;
  FRAMELANE_BOTH int first() const { return 0; }
  template <typename Int>
  FRAMELANE_BOTH Int sum(const Int& own) const {
    return own;
  }
};

/// `sample(k, x, y)` is the source's sample of channel k. Threads may share the work: thread
/// `team.first()` has every kThreads-th row from there on, and `team.sum` adds up what they have.
template <typename Int, typename Sample, typename Team>
FRAMELANE_BOTH std::uint8_t code(const TermView* terms, int count, const SumForm& form, int x,
                                 int y, Sample sample, Team team) {
  Int numerator(form.offset);
  Int denominator(form.denominator);
  for (int t = 0; t < count; ++t) {
    multiply_denominators(terms[t], x, y, numerator);
    multiply_denominators(terms[t], x, y, denominator);
  }
  for (int t = 0; t < count; ++t) {
    const AxisView& across = terms[t].across;
    const AxisView& down = terms[t].down;
    const std::int64_t* const columns = across.numerators + std::int64_t{x} * across.taps;
    const std::int64_t* const rows = down.numerators + std::int64_t{y} * down.taps;
    Int of_term(0);
    for (int c = 0; c < terms[t].channels; ++c) {
      const int k = terms[t].first_channel + c;
      Int of_channel(0);
      for (int j = team.first(); j < down.taps; j += Team::kThreads) {
        if (rows[j] == 0) continue;
        Int128 of_row = 0;
        for (int i = 0; i < across.taps; ++i) {
          of_row += Int128{columns[i]} * sample(k, across.first[x] + i, down.first[y] + j);
        }
        Int weighted(of_row);
        weighted *= rows[j];
        of_channel += weighted;
      }
      of_channel *= form.coefficients[k];
      of_term += of_channel;
    }
    for (int other = 0; other < count; ++other) {
      if (other != t) multiply_denominators(terms[other], x, y, of_term);
    }
    numerator += team.sum(of_term);
  }
  // Rounded half up: floor((2 n + d) / 2 d); the greatest code that is not above it.
  numerator *= 2;
  numerator += denominator;
  denominator *= 2;
  int low = 0;
  int high = 256;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (numerator < denominator * std::int64_t{middle} ? high : low) = middle;
  }
  return static_cast<std::uint8_t>(low);
}

/// The value in floating point, not rounded to a whole number. Wrong by less than 1e-8: it has at
/// most some 2000 roundings, each by 2^-53 of at most 10^4.
template <typename Sample>
FRAMELANE_BOTH double real_value(const TermView* terms, int count, const SumForm& form, int x,
                                 int y, Sample sample) {
  double sum = static_cast<double>(form.offset);
  for (int t = 0; t < count; ++t) {
    const AxisView& across = terms[t].across;
    const AxisView& down = terms[t].down;
    const std::int64_t* const columns = across.numerators + std::int64_t{x} * across.taps;
    const std::int64_t* const rows = down.numerators + std::int64_t{y} * down.taps;
    double of_term = 0;
    for (int c = 0; c < terms[t].channels; ++c) {
      const int k = terms[t].first_channel + c;
      double of_channel = 0;
      for (int j = 0; j < down.taps; ++j) {
        double of_row = 0;
        for (int i = 0; i < across.taps; ++i) {
          of_row +=
              static_cast<double>(columns[i]) * sample(k, across.first[x] + i, down.first[y] + j);
        }
        of_channel += static_cast<double>(rows[j]) * of_row;
      }
      of_term += static_cast<double>(form.coefficients[k]) * of_channel;
    }
    sum += of_term / static_cast<double>(across.denominators[x]) /
           static_cast<double>(down.denominators[y]);
  }
  return sum / static_cast<double>(form.denominator);
}

}  // namespace exact_sum

/// Sample (x, y): the form of the sums of the terms' channels, rounded half up and clamped.
template <typename Sample, typename Team = exact_sum::Alone>
FRAMELANE_BOTH std::uint8_t whole_number_code(const TermView* terms, int count, const SumForm& form,
                                              int x, int y, Sample sample, Team team = {}) {
  return form.narrow ? exact_sum::code<Int128>(terms, count, form, x, y, sample, team)
                     : exact_sum::code<WideInt>(terms, count, form, x, y, sample, team);
}

/// The same, if floating point has given `value` for it, which decides where it can.
template <typename Sample, typename Team = exact_sum::Alone>
FRAMELANE_BOTH std::uint8_t code_near(double value, const TermView* terms, int count,
                                      const SumForm& form, int x, int y, Sample sample,
                                      Team team = {}) {
  // What real_value may be wrong by. Whole numbers take a hundred times as long.
  constexpr double kDoubt = 1e-8;
  value += 0.5;
  if (value < 0) return 0;
  if (value >= 256) return 255;
  const int whole = static_cast<int>(value);
  const double fraction = value - whole;
  if (fraction > kDoubt && fraction < 1 - kDoubt) return static_cast<std::uint8_t>(whole);
  return whole_number_code(terms, count, form, x, y, sample, team);
}

/// The same, which is quicker.
template <typename Sample>
FRAMELANE_BOTH std::uint8_t exact_code(const TermView* terms, int count, const SumForm& form, int x,
                                       int y, Sample sample) {
  return code_near(exact_sum::real_value(terms, count, form, x, y, sample), terms, count, form, x,
                   y, sample);
}

}  // namespace framelane
