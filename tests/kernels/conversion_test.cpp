#include "kernels/conversion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/converter.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr ColorSpec kBt709;

ColorSpec sited(Siting siting) { return {Matrix::kBt709, Range::kLimited, siting}; }

Conversion between(PixelFormat source, ColorSpec source_color, PixelFormat target,
                   ColorSpec target_color) {
  return {16, 8, source, source_color, target, target_color};
}

TEST(ConversionTest, SameFormatAndColourIsAnIdentity) {
  for (const PixelFormat format : kAllFormats) {
    const ColorSpec color = info(format).rgb ? kRgbFull : kBt709;
    EXPECT_TRUE(is_identity(between(format, color, format, color))) << info(format).name;
  }
}

TEST(ConversionTest, AnotherFormatMatrixRangeOrSitingIsNoIdentity) {
  const auto to = [](PixelFormat format, ColorSpec color) {
    return is_identity(between(PixelFormat::kI420, kBt709, format, color));
  };
  EXPECT_FALSE(to(PixelFormat::kNv12, kBt709));
  EXPECT_FALSE(to(PixelFormat::kI420, {Matrix::kBt601}));
  EXPECT_FALSE(to(PixelFormat::kI420, {Matrix::kBt709, Range::kFull}));
  EXPECT_FALSE(to(PixelFormat::kI420, sited(Siting::kCenter)));
}

TEST(ConversionTest, WhatDoesNotTouchTheBytesDoesNotBreakAnIdentity) {
  ColorSpec tagged = kBt709;
  tagged.primaries = 9;
  tagged.transfer = 16;
  EXPECT_TRUE(is_identity(between(PixelFormat::kI420, kBt709, PixelFormat::kI420, tagged)));
  EXPECT_TRUE(
      is_identity(between(PixelFormat::kI444, kBt709, PixelFormat::kI444, sited(Siting::kCenter))));
  EXPECT_TRUE(is_identity(
      between(PixelFormat::kI422, kBt709, PixelFormat::kI422, sited(Siting::kTopLeft))));
  EXPECT_TRUE(
      is_identity(between(PixelFormat::kGray8, kBt709, PixelFormat::kGray8, {Matrix::kBt601})));
}

TEST(ConversionTest, IdentitiesAreSupportedWhateverTheFormat) {
  for (const PixelFormat format : kAllFormats) {
    const ColorSpec color = info(format).rgb ? kRgbFull : kBt709;
    EXPECT_EQ(why_unsupported(between(format, color, format, color)), std::nullopt)
        << info(format).name;
  }
}

TEST(ConversionTest, SizesOutsideTheLimitsAreRefused) {
  for (const auto& [width, height] : {std::pair{0, 8}, {8, 0}, {-1, 8}, {16385, 8}, {8, 16385}}) {
    Conversion conversion;
    conversion.source_color = kRgbFull;
    conversion.width = width;
    conversion.height = height;
    const std::string size = std::to_string(width) + "x" + std::to_string(height);
    EXPECT_THAT(why_unsupported(conversion), Optional(HasSubstr(size)));
  }
}

TEST(ConversionTest, TheSmallestAndLargestSizesAreAccepted) {
  for (const auto& [width, height] : {std::pair{1, 1}, {16384, 16384}}) {
    Conversion conversion;
    conversion.source_color = kRgbFull;
    conversion.width = width;
    conversion.height = height;
    EXPECT_EQ(why_unsupported(conversion), std::nullopt);
  }
}

TEST(ConversionTest, RgbTargetsAreRefused) {
  EXPECT_THAT(why_unsupported(between(PixelFormat::kI420, kBt709, PixelFormat::kBgra, kRgbFull)),
              Optional(HasSubstr("bgra")));
  EXPECT_THAT(why_unsupported(between(PixelFormat::kBgra, kRgbFull, PixelFormat::kRgb24, kRgbFull)),
              Optional(HasSubstr("rgb24")));
}

TEST(ConversionTest, Packed422TargetsAreRefused) {
  EXPECT_THAT(why_unsupported(between(PixelFormat::kI422, kBt709, PixelFormat::kYuyv, kBt709)),
              Optional(HasSubstr("yuyv422")));
  EXPECT_THAT(why_unsupported(between(PixelFormat::kI422, kBt709, PixelFormat::kUyvy, kBt709)),
              Optional(HasSubstr("uyvy422")));
}

TEST(ConversionTest, RaisingTheChromaResolutionIsRefused) {
  const auto why = [](PixelFormat source, PixelFormat target) {
    return why_unsupported(between(source, kBt709, target, kBt709));
  };
  EXPECT_THAT(why(PixelFormat::kI420, PixelFormat::kI422), Optional(HasSubstr("chroma")));
  EXPECT_THAT(why(PixelFormat::kNv12, PixelFormat::kI444), Optional(HasSubstr("chroma")));
  EXPECT_THAT(why(PixelFormat::kYuyv, PixelFormat::kYuv444), Optional(HasSubstr("chroma")));
}

TEST(ConversionTest, GrayMayGainNeutralChromaAndColourMayLoseIts) {
  EXPECT_EQ(why_unsupported(between(PixelFormat::kGray8, kBt709, PixelFormat::kI444, kBt709)),
            std::nullopt);
  EXPECT_EQ(why_unsupported(between(PixelFormat::kI420, kBt709, PixelFormat::kGray8, kBt709)),
            std::nullopt);
}

TEST(ConversionTest, MovingSubsampledChromaIsRefused) {
  for (const Siting from : kSitings) {
    for (const Siting to : kSitings) {
      const auto reason =
          why_unsupported(between(PixelFormat::kI420, sited(from), PixelFormat::kNv12, sited(to)));
      EXPECT_EQ(reason.has_value(), from != to) << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST(ConversionTest, In422LeftAndTopLeftAreTheSamePlace) {
  EXPECT_EQ(why_unsupported(between(PixelFormat::kI422, sited(Siting::kLeft), PixelFormat::kI420,
                                    sited(Siting::kTopLeft))),
            std::nullopt);
  EXPECT_THAT(why_unsupported(between(PixelFormat::kI422, sited(Siting::kCenter),
                                      PixelFormat::kI420, sited(Siting::kLeft))),
              Optional(HasSubstr("siting")));
}

TEST(ConversionTest, FullResolutionChromaMayTakeAnySiting) {
  for (const Siting siting : kSitings) {
    EXPECT_EQ(
        why_unsupported(between(PixelFormat::kI444, kBt709, PixelFormat::kI420, sited(siting))),
        std::nullopt);
  }
}

TEST(ConversionTest, AMatrixThatDoesNotFitItsFormatIsRefused) {
  EXPECT_THAT(why_unsupported(between(PixelFormat::kBgra, kBt709, PixelFormat::kI420, kBt709)),
              Optional(HasSubstr("source format bgra cannot have matrix bt709")));
  EXPECT_THAT(why_unsupported(between(PixelFormat::kBgra, kRgbFull, PixelFormat::kI420, kRgbFull)),
              Optional(HasSubstr("target format yuv420p cannot have matrix rgb")));
}

}  // namespace
}  // namespace framelane
