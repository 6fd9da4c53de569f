#include "kernels/fixed_form.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>

#include "kernels/linear_transform.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

std::int32_t clamped_value(const FixedForm& form, const std::array<std::int32_t, 3>& samples) {
  auto value = static_cast<std::uint32_t>(form.offset);
  for (std::size_t i = 0; i < form.inputs; ++i) {
    value +=
        static_cast<std::uint32_t>(form.coefficients[i]) * static_cast<std::uint32_t>(samples[i]);
  }
  return std::clamp(static_cast<std::int32_t>(value), form.least(), form.greatest());
}

bool needs_exactly(const FixedForm& form, std::int32_t value) {
  return form.window != 0 && (value & form.fraction_above_window()) == 0;
}

template <typename Visit>
void visit_color_pairs(Visit visit) {
  for (const Range from_range : kRanges) {
    for (const Range to_range : kRanges) {
      for (const Matrix to : kYuvMatrices) {
        for (const Matrix from : {Matrix::kRgb, Matrix::kBt601, Matrix::kBt709, Matrix::kBt2020}) {
          visit(ColorSpec{from, from_range}, ColorSpec{to, to_range});
        }
      }
    }
  }
}

TEST(FixedFormTest, OneSampleIsProvenExactAtEveryScaleOfTheFilters) {
  for (const Range from : kRanges) {
    for (const Range to : kRanges) {
      const auto forms = color_transform({Matrix::kBt709, from}, {Matrix::kBt709, to});
      for (const LinearForm& form : forms) {
        for (const int scale : {1, 2, 4, 8, 16}) {
          const FixedForm fixed = fixed_form(form, {scale, scale, scale});
          ASSERT_EQ(fixed.inputs, 1u);
          EXPECT_EQ(fixed.window, 0) << to_string(from) << " " << to_string(to) << " " << scale;
          for (std::int32_t sample = 0; sample <= 255 * scale; ++sample) {
            ASSERT_EQ(clamped_value(fixed, {sample}) >> fixed.fraction_bits,
                      fixed.exactly({sample}))
                << sample;
          }
        }
      }
    }
  }
}

TEST(FixedFormTest, ChromaOfOtherChromaTakesNoLuma) {
  const auto forms = color_transform({Matrix::kBt601}, {Matrix::kBt2020, Range::kFull});
  EXPECT_EQ(fixed_form(forms[1], {1, 1, 1}).input[0], 1u);
  EXPECT_EQ(fixed_form(forms[2], {1, 1, 1}).inputs, 2u);
}

// Extreme and random samples of every change of colour: outside the window the fixed-point result
// is right, and few values are inside the window.
TEST(FixedFormTest, WhatLiesOutsideTheWindowIsExact) {
  std::mt19937 random(3);
  visit_color_pairs([&](const ColorSpec& from, const ColorSpec& to) {
    for (const LinearForm& form : color_transform(from, to)) {
      for (const int scale : {1, 4, 16, 64}) {
        const FixedForm fixed = fixed_form(form, {scale, scale, scale});
        if (fixed.inputs == 1) continue;
        ASSERT_LE(fixed.window, std::int32_t{1} << (fixed.fraction_bits - 6));
        for (int i = 0; i < 3000; ++i) {
          std::array<std::int32_t, 3> samples{};
          for (std::int32_t& sample : samples) {
            const std::uint32_t bits = random();
            const int most = 255 * scale;
            sample = bits % 8 == 0 ? 0
                     : bits % 8 == 1
                         ? most
                         : static_cast<std::int32_t>((bits >> 3) % static_cast<unsigned>(most + 1));
          }
          const std::int32_t value = clamped_value(fixed, samples);
          if (needs_exactly(fixed, value)) continue;
          ASSERT_EQ(value >> fixed.fraction_bits,
                    fixed.exactly({samples[0], samples[1], samples[2]}))
              << describe(from) << " to " << describe(to) << " at scale " << scale;
        }
      }
    }
  });
}

// R'G'B' and chroma whose exact value is midway between two codes: all of these must be inside the
// window.
TEST(FixedFormTest, TiesBetweenCodesAreInTheWindow) {
  int ties = 0;
  visit_color_pairs([&](const ColorSpec& from, const ColorSpec& to) {
    for (const LinearForm& form : color_transform(from, to)) {
      const FixedForm fixed = fixed_form(form, {16, 16, 16});
      if (fixed.window == 0) continue;
      const LinearForm twice = form.rounding_for_scale(16);
      for (std::int32_t a = 0; a <= 4080; a += 120) {
        for (std::int32_t b = 0; b <= 4080; b += 120) {
          std::array<std::int64_t, 3> samples{};
          samples[fixed.input[0]] = a;
          samples[fixed.input[1]] = b;
          std::int64_t numerator = twice.offset;
          for (std::size_t k = 0; k < 3; ++k) numerator += twice.coefficients[k] * samples[k];
          if (numerator % twice.denominator != 0 || numerator / twice.denominator < 1 ||
              numerator / twice.denominator > 255) {
            continue;
          }
          ++ties;
          EXPECT_TRUE(needs_exactly(fixed, clamped_value(fixed, {a, b, 0})));
        }
      }
    }
  });
  EXPECT_GT(ties, 0);
}

TEST(FixedFormTest, OnlyTheSampleItselfIsACopy) {
  const auto same = color_transform({Matrix::kBt709}, {Matrix::kBt709});
  const auto wider = color_transform({Matrix::kBt709}, {Matrix::kBt709, Range::kFull});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_copy(same[i], i));
    EXPECT_FALSE(is_copy(same[i], (i + 1) % 3));
    EXPECT_FALSE(is_copy(wider[i], i));
  }
}

}  // namespace
}  // namespace framelane
