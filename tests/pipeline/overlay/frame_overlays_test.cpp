#include "pipeline/overlay/frame_overlays.hpp"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::system_clock::time_point;

constexpr PictureSize kFrame{200, 100};
const Time kTaken{1'767'323'045s};

ColorSpec full_range() {
  ColorSpec color;
  color.range = Range::kFull;
  return color;
}

/// What is drawn on a black frame.
std::vector<std::uint8_t> drawn(const Overlays& overlays) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kFrame.width) *
                                   static_cast<std::size_t>(kFrame.height));
  const ImageView frame{
      PixelFormat::kGray8, kFrame.width, kFrame.height, {{{pixels.data(), kFrame.width}}}};
  for (const auto& overlay : overlays) blend(*overlay, frame, 0, kFrame.height);
  return pixels;
}

/// The part of the frame in which something is drawn.
Rect drawn_part(const Overlays& overlays) {
  const std::vector<std::uint8_t> pixels = drawn(overlays);
  int left = kFrame.width, top = kFrame.height, right = 0, bottom = 0;
  for (int y = 0; y < kFrame.height; ++y) {
    for (int x = 0; x < kFrame.width; ++x) {
      if (pixels[static_cast<std::size_t>(y * kFrame.width + x)] == 0) continue;
      left = std::min(left, x);
      top = std::min(top, y);
      right = std::max(right, x + 1);
      bottom = std::max(bottom, y + 1);
    }
  }
  return {left, top, right - left, bottom - top};
}

class FrameOverlaysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = 20;
    image.height = 10;
    image.format = PNG_FORMAT_GRAY;
    const std::vector<std::uint8_t> white(200, 255);
    ASSERT_NE(png_image_write_to_file(&image, file_.c_str(), 0, white.data(), 0, nullptr), 0);
  }
  OverlayOptions logo() const {
    OverlayOptions options;
    options.image = file_;
    return options;
  }
  static FrameOverlays make(const std::vector<OverlayOptions>& options,
                            Rational sample_aspect_ratio = {1, 1}) {
    return {options, kFrame, sample_aspect_ratio, PixelFormat::kGray8, full_range()};
  }

  const testing::TempFolder folder_;
  const std::string file_ = folder_ / "image.png";
};

TEST_F(FrameOverlaysTest, AnImageIsAtItsPlaceWithAMarginOfTwoPercentOfTheHeight) {
  constexpr int kLeft[] = {2, 90, 178};
  constexpr int kTop[] = {2, 44, 88};  // the middle is rounded down to an even row
  for (int down = 0; down < 3; ++down) {
    for (int across = 0; across < 3; ++across) {
      std::vector options{logo()};
      options[0].across = static_cast<Along>(across);
      options[0].down = static_cast<Along>(down);
      const auto pixels = drawn(*make(options).at(kTaken));
      for (int y = 0; y < kFrame.height; ++y) {
        for (int x = 0; x < kFrame.width; ++x) {
          const bool inside = x >= kLeft[across] && x < kLeft[across] + 20 && y >= kTop[down] &&
                              y < kTop[down] + 10;
          ASSERT_EQ(pixels[static_cast<std::size_t>(y * kFrame.width + x)], inside ? 255 : 0)
              << across << ' ' << down << " at " << x << ", " << y;
        }
      }
    }
  }
}

TEST_F(FrameOverlaysTest, AnImagesWidthIsAPartOfThePictures) {
  std::vector options{logo()};
  options[0].width = 0.5;
  options[0].opacity = 0.5;
  const auto pixels = drawn(*make(options).at(kTaken));
  EXPECT_EQ(std::ranges::count(pixels, 128), 100 * 50);
}

TEST_F(FrameOverlaysTest, AnImageKeepsItsShapeWherePixelsAreNotSquare) {
  std::vector options{logo()};
  EXPECT_EQ(drawn_part(*make(options, {2, 1}).at(kTaken)), (Rect{0, 2, 10, 10}));
  EXPECT_EQ(drawn_part(*make(options, {1, 2}).at(kTaken)), (Rect{4, 2, 40, 10}));
  options[0].width = 0.25;
  EXPECT_EQ(drawn_part(*make(options, {2, 1}).at(kTaken)), (Rect{0, 2, 50, 50}));
  EXPECT_EQ(drawn_part(*make(options, {1, 2}).at(kTaken)).height, 13);
}

TEST_F(FrameOverlaysTest, AMarginIsAsWideAsItIsHighWherePixelsAreNotSquare) {
  std::vector options{logo()};
  options[0].across = options[0].down = Along::kEnd;
  EXPECT_EQ(drawn_part(*make(options, {1, 2}).at(kTaken)), (Rect{156, 88, 40, 10}));
}

TEST_F(FrameOverlaysTest, ATextKeepsItsShapeWherePixelsAreNotSquare) {
  std::vector options{OverlayOptions{}};
  options[0].text = "WIM";
  options[0].size = 0.4;
  options[0].box.alpha = 0;
  const Rect square = drawn_part(*make(options).at(kTaken));
  for (const Rational ratio : {Rational{2, 1}, Rational{4, 3}, Rational{10, 11}, Rational{1, 2}}) {
    const Rect part = drawn_part(*make(options, ratio).at(kTaken));
    EXPECT_NEAR(part.width * ratio.num, square.width * ratio.den, 3 * ratio.num) << ratio.num;
    EXPECT_NEAR(part.height, square.height, 1) << ratio.num;
  }
}

// Capital letters are about seven tenths of their size.
TEST_F(FrameOverlaysTest, ATextsSizeIsAPartOfThePicturesHeight) {
  std::vector options{OverlayOptions{}};
  options[0].text = "H";
  options[0].box.alpha = 0;
  for (const double size : {0.2, 0.4, 0.8}) {
    options[0].size = size;
    EXPECT_NEAR(drawn_part(*make(options).at(kTaken)).height, 0.72 * size * kFrame.height,
                0.1 * size * kFrame.height + 1);
  }
}

TEST_F(FrameOverlaysTest, ARatioThatNoScreenHasCostsNoMore) {
  std::vector options{OverlayOptions{}};
  options[0].text = "W";
  options[0].size = 1;
  EXPECT_FALSE(make(options, {1, 65535}).at(kTaken)->empty());
  EXPECT_FALSE(make(options, {65535, 1}).at(kTaken)->empty());
}

TEST_F(FrameOverlaysTest, ATextIsDrawnAgainOnlyWhenItChanges) {
  std::vector options{logo(), OverlayOptions{}, OverlayOptions{}};
  options[1].text = "%T";
  options[2].text = "gate";
  FrameOverlays overlays = make(options);
  const auto first = overlays.at(kTaken);
  EXPECT_EQ(overlays.at(kTaken + 900ms), first);
  const auto second = overlays.at(kTaken + 1s);
  ASSERT_NE(second, first);
  EXPECT_EQ((*second)[0], (*first)[0]);
  EXPECT_NE((*second)[1], (*first)[1]);
  EXPECT_EQ((*second)[2], (*first)[2]);
  EXPECT_NE(drawn(*first), drawn(*second));
}

TEST_F(FrameOverlaysTest, LaterOnesAreDrawnOverEarlierOnes) {
  std::vector options{OverlayOptions{}, logo()};
  options[0].text = "gate";
  const auto pixels = drawn(*make(options).at(kTaken));
  for (int y = 2; y < 12; ++y) {
    for (int x = 2; x < 22; ++x) {
      ASSERT_EQ(pixels[static_cast<std::size_t>(y * kFrame.width + x)], 255);
    }
  }
}

TEST_F(FrameOverlaysTest, WhatCannotBeReadIsAnError) {
  std::vector options{logo()};
  options[0].image += ".no";
  EXPECT_THROW(make(options), FeedError);
}

}  // namespace
}  // namespace framelane
