#include "kernels/luma_histogram.hpp"

#include <gtest/gtest.h>

#include <random>

#include "kernels/channel.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

LumaHistogram counted_one_by_one(const ConstImageView& image) {
  LumaHistogram result;
  const ConstChannel luma = channels(image)[0];
  for (int y = 0; y < luma.height; ++y) {
    for (int x = 0; x < luma.width; ++x) ++result.counts[luma.at(x, y)];
  }
  return result;
}

class LumaHistogramTest : public testing::TestWithParam<PixelFormat> {};

TEST_P(LumaHistogramTest, CountsEverySampleOfEverySize) {
  std::mt19937 random(1);
  for (const int width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 64, 131}) {
    for (const int height : {1, 2, 5}) {
      for (const TestLayout& layout : {TestLayout{}, TestLayout{.padding = 3, .bottom_up = true}}) {
        TestImage image(GetParam(), width, height, layout);
        image.fill_random(random);
        LumaHistogram luma;
        count_luma(image.const_view(), 0, height, luma);
        EXPECT_EQ(luma, counted_one_by_one(image.const_view())) << width << 'x' << height;
        EXPECT_EQ(luma.samples(), static_cast<std::uint64_t>(width * height));
      }
    }
  }
}

TEST_P(LumaHistogramTest, BandsOfRowsAddUp) {
  std::mt19937 random(2);
  TestImage image(GetParam(), 21, 13);
  image.fill_random(random);
  LumaHistogram luma;
  for (const auto& [begin, end] : {std::pair{12, 13}, {0, 2}, {6, 12}, {2, 6}}) {
    count_luma(image.const_view(), begin, end, luma);
  }
  EXPECT_EQ(luma, counted_one_by_one(image.const_view()));
}

INSTANTIATE_TEST_SUITE_P(, LumaHistogramTest,
                         testing::Values(PixelFormat::kI420, PixelFormat::kNv12, PixelFormat::kI422,
                                         PixelFormat::kYuyv, PixelFormat::kUyvy, PixelFormat::kI444,
                                         PixelFormat::kYuv444, PixelFormat::kGray8),
                         FormatName());

TEST(LumaHistogramFiguresTest, FollowFromTheCounts) {
  LumaHistogram luma;
  luma.counts[16] = 3;
  luma.counts[235] = 1;
  EXPECT_EQ(luma.samples(), 4u);
  EXPECT_EQ(luma.sum(), 283u);
  EXPECT_EQ(luma.minimum(), 16);
  EXPECT_EQ(luma.maximum(), 235);
  EXPECT_EQ(luma.mean(), 70.75);
}

TEST(LumaHistogramFiguresTest, TheLargestWhiteFrameFits) {
  LumaHistogram luma;
  luma.counts[255] = 16384U * 16384U;
  EXPECT_EQ(luma.sum(), std::uint64_t{16384} * 16384 * 255);
  EXPECT_EQ(luma.mean(), 255.0);
  EXPECT_EQ(luma.minimum(), 255);
}

TEST(LumaHistogramFiguresTest, FramesOfRgbHaveNoLuma) {
  for (const PixelFormat format : kAllFormats) EXPECT_NE(has_luma(format), info(format).rgb);
}

}  // namespace
}  // namespace framelane
