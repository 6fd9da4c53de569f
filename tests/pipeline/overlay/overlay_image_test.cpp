#include "pipeline/overlay/overlay_image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OverlayImageTest : public ::testing::Test {
 protected:
  void write(unsigned width, unsigned height, png_uint_32 format, const void* pixels) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width;
    image.height = height;
    image.format = format;
    ASSERT_NE(png_image_write_to_file(&image, file_.c_str(), 0, pixels, 0, nullptr), 0)
        << image.message;
  }
  std::string why_not() const {
    try {
      read_png(file_);
    } catch (const FeedError& error) {
      EXPECT_EQ(error.code(), FeedFault::kConfiguration);
      return error.what();
    }
    return "";
  }

  const testing::TempFolder folder_;
  const std::string file_ = folder_ / "image.png";
};

TEST_F(OverlayImageTest, EveryKindOfPngBecomesRgbAndStraightAlpha) {
  const std::uint8_t rgba[] = {200, 100, 50, 128, 1, 2, 3, 0};
  write(2, 1, PNG_FORMAT_RGBA, rgba);
  EXPECT_THAT(read_png(file_).pixels, ElementsAre(200, 100, 50, 128, 1, 2, 3, 0));
  const std::uint8_t rgb[] = {200, 100, 50, 1, 2, 3};
  write(1, 2, PNG_FORMAT_RGB, rgb);
  EXPECT_THAT(read_png(file_).pixels, ElementsAre(200, 100, 50, 255, 1, 2, 3, 255));
  const std::uint8_t gray[] = {7, 9};
  write(2, 1, PNG_FORMAT_GRAY, gray);
  EXPECT_THAT(read_png(file_).pixels, ElementsAre(7, 7, 7, 255, 9, 9, 9, 255));
}

TEST_F(OverlayImageTest, AFileThatCannotBeReadIsNamedWithTheReason) {
  EXPECT_THAT(why_not(), HasSubstr("No such file or directory"));
  std::ofstream(file_) << "no picture";
  EXPECT_THAT(why_not(), AllOf(HasSubstr(file_), HasSubstr("give a PNG file")));
  const std::vector<std::uint8_t> pixels(400, 3);
  write(10, 10, PNG_FORMAT_RGBA, pixels.data());
  std::filesystem::resize_file(file_, 60);
  EXPECT_THAT(why_not(), HasSubstr("cannot be read: "));
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  EXPECT_THAT(why_not(), HasSubstr("is not a regular file"));
}

TEST_F(OverlayImageTest, AnImageThatIsTooLargeIsRefusedBeforeItIsRead) {
  const std::vector<std::uint8_t> pixels(kMaxOverlayImageSide + 1, 3);
  write(kMaxOverlayImageSide + 1, 1, PNG_FORMAT_GRAY, pixels.data());
  EXPECT_THAT(why_not(), HasSubstr("is 8193x1, and at most 8192"));
}

RgbaPicture plain(int width, int height, const std::vector<std::uint8_t>& pixel) {
  RgbaPicture picture{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    std::ranges::copy(pixel, std::back_inserter(picture.pixels));
  }
  return picture;
}

TEST(ScaledImageTest, OneColourStaysAsItIs) {
  for (const PictureSize size : {PictureSize{3, 5}, {40, 20}, {64, 64}}) {
    const RgbaPicture picture = scaled(plain(17, 9, {200, 100, 50, 255}), size);
    EXPECT_EQ(picture.width, size.width);
    EXPECT_EQ(picture.pixels, plain(size.width, size.height, {200, 100, 50, 255}).pixels);
  }
}

TEST(ScaledImageTest, WhatIsNotSeenColoursNothing) {
  // Opaque red on the left, black that is not seen on the right.
  RgbaPicture picture = plain(16, 4, {255, 0, 0, 255});
  for (int y = 0; y < 4; ++y) {
    for (int x = 8; x < 16; ++x) std::fill_n(picture.at(x, y), 4, std::uint8_t{0});
  }
  const RgbaPicture half = scaled(picture, {6, 3});
  for (int y = 0; y < half.height; ++y) {
    for (int x = 0; x < half.width; ++x) {
      if (half.at(x, y)[3] < 16) continue;  // the last bits of a colour that is hardly seen
      EXPECT_GE(half.at(x, y)[0], 240) << x;
      EXPECT_EQ(half.at(x, y)[1], 0);
    }
    EXPECT_EQ(half.at(0, y)[3], 255);
    EXPECT_EQ(half.at(5, y)[3], 0);
  }
}

TEST(ScaledImageTest, LessThanA64thIsRefused) {
  EXPECT_THROW(scaled(plain(1000, 4, {1, 2, 3, 4}), {10, 4}), FeedError);
}

TEST(FadeTest, OnlyAlphaChanges) {
  RgbaPicture picture = plain(2, 1, {10, 20, 30, 200});
  fade(picture, 0.25);
  EXPECT_THAT(picture.pixels, ElementsAre(10, 20, 30, 50, 10, 20, 30, 50));
}

}  // namespace
}  // namespace framelane
