#include "kernels/color_spec.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

TEST(ColorSpecTest, EveryMatrixNameLeadsBackToItsValue) {
  for (const Matrix matrix : {Matrix::kRgb, Matrix::kBt601, Matrix::kBt709, Matrix::kBt2020}) {
    EXPECT_EQ(matrix_from_name(to_string(matrix)), matrix) << to_string(matrix);
  }
}

TEST(ColorSpecTest, EveryRangeNameLeadsBackToItsValue) {
  for (const Range range : {Range::kLimited, Range::kFull}) {
    EXPECT_EQ(range_from_name(to_string(range)), range) << to_string(range);
  }
}

TEST(ColorSpecTest, EverySitingNameLeadsBackToItsValue) {
  for (const Siting siting : {Siting::kLeft, Siting::kCenter, Siting::kTopLeft}) {
    EXPECT_EQ(siting_from_name(to_string(siting)), siting) << to_string(siting);
  }
}

TEST(ColorSpecTest, NamesAreThoseOfTheConfiguration) {
  EXPECT_EQ(matrix_from_name("bt2020"), Matrix::kBt2020);
  EXPECT_EQ(range_from_name("limited"), Range::kLimited);
  EXPECT_EQ(siting_from_name("topleft"), Siting::kTopLeft);
}

TEST(ColorSpecTest, UnknownNamesAreNothing) {
  EXPECT_EQ(matrix_from_name("709"), std::nullopt);
  EXPECT_EQ(range_from_name("tv"), std::nullopt);
  EXPECT_EQ(siting_from_name("Left"), std::nullopt);
}

TEST(ColorSpecTest, DescriptionNamesMatrixRangeAndSiting) {
  EXPECT_EQ(describe(ColorSpec{}), "bt709 limited left");
  EXPECT_EQ(describe(ColorSpec{Matrix::kBt601, Range::kFull, Siting::kTopLeft}),
            "bt601 full topleft");
}

}  // namespace
}  // namespace framelane
