#include "kernels/pixel_format.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

TEST(PixelFormatTest, EveryNameLeadsBackToItsFormat) {
  static_assert(std::size(kAllFormats) == kPixelFormatCount);
  for (const PixelFormat format : kAllFormats) {
    EXPECT_EQ(pixel_format_from_name(info(format).name), format) << info(format).name;
  }
}

TEST(PixelFormatTest, UnknownNamesAreNoFormat) {
  for (const char* name : {"", "BGRA", "bgr0", "yuvj420p", "i420", "nv12 "}) {
    EXPECT_EQ(pixel_format_from_name(name), std::nullopt) << name;
  }
}

struct Size {
  std::size_t row_bytes;
  int rows;
};

void expect_planes(PixelFormat format, const std::vector<Size>& planes) {
  SCOPED_TRACE(info(format).name);
  ASSERT_EQ(info(format).plane_count, static_cast<int>(planes.size()));
  for (int i = 0; i < info(format).plane_count; ++i) {
    EXPECT_EQ(plane_row_bytes(format, i, 5), planes[static_cast<std::size_t>(i)].row_bytes) << i;
    EXPECT_EQ(plane_rows(format, i, 3), planes[static_cast<std::size_t>(i)].rows) << i;
  }
}

TEST(PixelFormatTest, PlanesOfAnOddSizeAreRoundedUp) {
  for (const PixelFormat format :
       {PixelFormat::kBgra, PixelFormat::kRgba, PixelFormat::kArgb, PixelFormat::kAbgr}) {
    expect_planes(format, {{20, 3}});
  }
  for (const PixelFormat format :
       {PixelFormat::kBgr24, PixelFormat::kRgb24, PixelFormat::kYuv444}) {
    expect_planes(format, {{15, 3}});
  }
  expect_planes(PixelFormat::kI420, {{5, 3}, {3, 2}, {3, 2}});
  expect_planes(PixelFormat::kNv12, {{5, 3}, {6, 2}});
  expect_planes(PixelFormat::kI422, {{5, 3}, {3, 3}, {3, 3}});
  expect_planes(PixelFormat::kYuyv, {{12, 3}});
  expect_planes(PixelFormat::kUyvy, {{12, 3}});
  expect_planes(PixelFormat::kI444, {{5, 3}, {5, 3}, {5, 3}});
  expect_planes(PixelFormat::kGray8, {{5, 3}});
}

TEST(PixelFormatTest, KindsAreExclusiveAndSubsamplingMatchesTheLayout) {
  for (const PixelFormat format : kAllFormats) {
    const PixelFormatInfo& i = info(format);
    SCOPED_TRACE(i.name);
    EXPECT_FALSE(i.rgb && i.gray);
    EXPECT_FALSE((i.rgb || i.gray) && (i.chroma_half_width || i.chroma_half_height));
    EXPECT_FALSE(i.chroma_half_height && !i.chroma_half_width);
  }
}

}  // namespace
}  // namespace framelane
