#include "kernels/exact_quotient.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/linear_transform.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

// Calls visit(quotient, form, scale) for every form and scale that conversions from RGB to 4:2:0
// use.
template <typename Visit>
void visit_quotients(Visit visit) {
  const ColorSpec rgb{Matrix::kRgb, Range::kFull};
  for (const Matrix matrix : kYuvMatrices) {
    for (const Range range : kRanges) {
      const auto forms = color_transform(rgb, {matrix, range});
      for (std::size_t channel = 0; channel < 3; ++channel) {
        for (const int scale : {1, 4, 8, 16}) {
          SCOPED_TRACE(std::string(to_string(matrix)) + " " + std::string(to_string(range)) +
                       " channel " + std::to_string(channel) + " scale " + std::to_string(scale));
          visit(exact_quotient(forms[channel], scale), forms[channel], scale);
        }
      }
    }
  }
}

// Neither floor(n / d) nor the quotient falls as n grows. So if they are equal on both sides of
// every step, they are equal for all numerators between.
TEST(ExactQuotientTest, DivisionIsExactForEveryNumeratorBelowTheLimit) {
  visit_quotients([](const ExactQuotient& q, const LinearForm&, int) {
    ASSERT_LT(q.numerator_limit(), std::uint64_t{1} << 32);
    for (std::uint32_t step = 0; step <= 256; ++step) {
      EXPECT_EQ(q.divide(step * q.divisor), step);
      EXPECT_EQ(q.divide(step * q.divisor + q.divisor - 1), step);
    }
  });
}

TEST(ExactQuotientTest, NoSampleSumsReachTheLimitOrFallBelowZero) {
  visit_quotients([](const ExactQuotient& q, const LinearForm&, int scale) {
    std::int64_t least = q.offset, most = q.offset;
    for (const std::uint32_t bits : q.coefficients) {
      const std::int64_t product = std::int64_t{static_cast<std::int32_t>(bits)} * 255 * scale;
      least += std::min<std::int64_t>(product, 0);
      most += std::max<std::int64_t>(product, 0);
    }
    EXPECT_GE(least, 0);
    EXPECT_LT(most, static_cast<std::int64_t>(q.numerator_limit()));
  });
}

TEST(ExactQuotientTest, KnownFormsHaveTheirTextbookNumbers) {
  const auto forms = color_transform({Matrix::kRgb, Range::kFull}, {Matrix::kBt709});
  const ExactQuotient luma = exact_quotient(forms[0], 1);
  EXPECT_EQ(luma.coefficients, (std::array<std::uint32_t, 3>{77599, 261048, 26353}));
  EXPECT_EQ(luma.divisor, 425000u);
  EXPECT_EQ(luma.magic, 41393379u);
  EXPECT_EQ(luma.shift, 12u);
}

}  // namespace
}  // namespace framelane
