#include "pipeline/overlay/frame_overlays.hpp"

#include <gtest/gtest.h>
#include <png.h>

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
  static FrameOverlays make(const std::vector<OverlayOptions>& options) {
    return {options, kFrame, PixelFormat::kGray8, full_range()};
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
