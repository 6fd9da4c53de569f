#include "kernels/overlay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/channel.hpp"
#include "kernels/linear_transform.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

RgbaPicture random_picture(int width, int height, std::mt19937& random) {
  RgbaPicture picture{width, height, {}};
  picture.pixels.resize(std::size_t{4} * static_cast<std::size_t>(width) *
                        static_cast<std::size_t>(height));
  for (std::uint8_t& value : picture.pixels) {
    const auto any = static_cast<std::uint8_t>(random());
    value = any < 50 ? 0 : any > 205 ? 255 : any;
  }
  return picture;
}

RgbaPicture plain_picture(int width, int height, const std::array<std::uint8_t, 4>& pixel) {
  RgbaPicture picture{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    picture.pixels.insert(picture.pixels.end(), pixel.begin(), pixel.end());
  }
  return picture;
}

/// (number + half) / count, rounded down.
int rounded(int number, int count) { return (2 * number + count) / (2 * count); }

class OverlayTest : public ::testing::TestWithParam<PixelFormat> {
 protected:
  ColorSpec color() const { return info(GetParam()).rgb ? kRgbFull : ColorSpec{}; }
  std::size_t channel_count() const { return info(GetParam()).gray ? 1 : 3; }

  /// What the definition makes of a sample of the frame that was `under`.
  int expected(const RgbaPicture& picture, int left, int top, const ConstChannel& channel,
               std::size_t k, int x, int y, int under, const PictureSize& frame) const {
    const int across = channel.half_width ? 2 : 1;
    const int down = channel.half_height ? 2 : 1;
    int weight = 0;
    int count = 0;
    std::array<int, 3> sums{};
    for (int v = y * down; v < std::min((y + 1) * down, frame.height); ++v) {
      for (int u = x * across; u < std::min((x + 1) * across, frame.width); ++u) {
        const int column = u - left;
        const int row = v - top;
        ++count;
        if (column < 0 || row < 0 || column >= picture.width || row >= picture.height) continue;
        const std::uint8_t* const pixel = picture.at(column, row);
        weight += pixel[3];
        for (std::size_t i = 0; i < 3; ++i) sums[i] += pixel[3] * pixel[i];
      }
    }
    if (weight == 0) return under;
    std::array<std::uint8_t, 3> rgb{};
    for (std::size_t i = 0; i < 3; ++i) {
      rgb[i] = static_cast<std::uint8_t>(rounded(sums[i], weight));
    }
    const int code = info(GetParam()).rgb ? rgb[k] : codes_of(rgb, color())[k];
    const int mean = rounded(weight, count);
    return rounded(mean * code + (255 - mean) * under, 255);
  }

  std::mt19937 random_{16};
};

TEST_P(OverlayTest, EverySampleIsTheDefinitions) {
  for (const PictureSize frame : {PictureSize{64, 40}, {61, 37}, {3, 5}, {1, 1}}) {
    for (const auto& [left, top] : {std::pair{0, 0}, {8, 6}, {-6, -4}, {frame.width / 4 * 2, 2}}) {
      const RgbaPicture picture =
          random_picture(1 + frame.width / 2, 1 + frame.height / 2, random_);
      TestImage image(GetParam(), frame.width, frame.height, {.padding = 3});
      image.fill_random(random_);
      TestImage before = image;
      const Overlay overlay(picture, left, top, frame, GetParam(), color());
      blend(overlay, image.view(), 0, frame.height);
      const auto from = channels(before.const_view());
      const auto to = channels(image.const_view());
      for (std::size_t k = 0; k < channel_count(); ++k) {
        for (int y = 0; y < to[k].height; ++y) {
          for (int x = 0; x < to[k].width; ++x) {
            ASSERT_EQ(to[k].at(x, y),
                      expected(picture, left, top, to[k], k, x, y, from[k].at(x, y), frame))
                << frame.width << 'x' << frame.height << " at " << left << ", " << top
                << ", channel " << k << " at " << x << ", " << y;
          }
        }
      }
      ASSERT_TRUE(image.padding_untouched());
    }
  }
}

TEST_P(OverlayTest, RowsMayBeDrawnInAnyParts) {
  const PictureSize frame{130, 51};
  for (const bool bottom_up : {false, true}) {
    TestImage whole(GetParam(), frame.width, frame.height, {.padding = 1, .bottom_up = bottom_up});
    whole.fill_random(random_);
    TestImage parts = whole;
    const Overlay overlay(random_picture(100, 44, random_), 10, 5, frame, GetParam(), color());
    blend_reference(overlay, whole.view(), 0, frame.height);
    for (const auto& [begin, end] : {std::pair{30, 51}, {0, 2}, {2, 6}, {6, 30}}) {
      blend(overlay, parts.view(), begin, end);
    }
    EXPECT_EQ(whole.pixels(), parts.pixels());
    EXPECT_TRUE(parts.padding_untouched());
  }
}

TEST_P(OverlayTest, APlaceIsRoundedDownToEvenPixels) {
  const PictureSize frame{20, 20};
  const RgbaPicture picture = random_picture(6, 6, random_);
  for (const auto& [odd, even] : {std::pair{5, 4}, {-1, -2}, {-3, -4}}) {
    const Overlay a(picture, odd, odd, frame, GetParam(), color());
    const Overlay b(picture, even, even, frame, GetParam(), color());
    EXPECT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(a.planes()[0].left, b.planes()[0].left);
    EXPECT_EQ(a.planes()[0].top, b.planes()[0].top);
  }
}

TEST_P(OverlayTest, WhatLiesOutsideTheFrameIsLeftOut) {
  TestImage image(GetParam(), 16, 16);
  image.fill_random(random_);
  const auto before = image.pixels();
  const RgbaPicture picture = plain_picture(4, 4, {255, 255, 255, 255});
  for (const auto& [x, y] : {std::pair{16, 0}, {0, 16}, {-4, 0}, {0, -4}, {1000, 1000}}) {
    const Overlay overlay(picture, x, y, {16, 16}, GetParam(), color());
    EXPECT_TRUE(overlay.bytes().empty());
    blend(overlay, image.view(), 0, 16);
  }
  const Overlay nothing({}, 0, 0, {16, 16}, GetParam(), color());
  blend(nothing, image.view(), 0, 16);
  EXPECT_EQ(image.pixels(), before);
}

INSTANTIATE_TEST_SUITE_P(Formats, OverlayTest, ::testing::ValuesIn(kAllFormats), FormatName());

TEST(OverlayAlphaTest, TheAlphaOfAFrameStays) {
  for (const auto& [format, alpha] : {std::pair{PixelFormat::kBgra, 3},
                                      {PixelFormat::kRgba, 3},
                                      {PixelFormat::kArgb, 0},
                                      {PixelFormat::kAbgr, 0}}) {
    TestImage image(format, 2, 2);
    std::mt19937 random{7};
    image.fill_random(random);
    const auto before = image.pixels();
    const Overlay overlay(plain_picture(2, 2, {9, 8, 7, 255}), 0, 0, {2, 2}, format, kRgbFull);
    blend(overlay, image.view(), 0, 2);
    const auto after = image.pixels();
    for (std::size_t i = 0; i < after.size(); ++i) {
      const bool is_alpha = i % 4 == static_cast<std::size_t>(alpha);
      EXPECT_EQ(after[i] == before[i], is_alpha) << info(format).name << ' ' << i;
    }
  }
}

TEST(OverlayBlendTest, EveryWeightCodeAndSampleIsRoundedToTheNearest) {
  // Columns are codes, rows are weights: grays in full range are their own codes.
  RgbaPicture picture{256, 256, {}};
  for (int weight = 0; weight < 256; ++weight) {
    for (int code = 0; code < 256; ++code) {
      const auto gray = static_cast<std::uint8_t>(code);
      picture.pixels.insert(picture.pixels.end(),
                            {gray, gray, gray, static_cast<std::uint8_t>(weight)});
    }
  }
  ColorSpec full;
  full.range = Range::kFull;
  const Overlay overlay(picture, 0, 0, {256, 256}, PixelFormat::kGray8, full);
  TestImage image(PixelFormat::kGray8, 256, 256);
  for (int sample = 0; sample < 256; ++sample) {
    const ImageView view = image.view();
    for (int y = 0; y < 256; ++y)
      std::fill_n(view.row(0, y), 256, static_cast<std::uint8_t>(sample));
    blend(overlay, view, 0, 256);
    for (int weight = 0; weight < 256; ++weight) {
      for (int code = 0; code < 256; ++code) {
        const double real = (weight * code + (255 - weight) * sample) / 255.0;
        const int got = view.row(0, weight)[code];
        ASSERT_LT(std::abs(got - real), 0.5) << weight << ' ' << code << ' ' << sample;
      }
    }
  }
}

}  // namespace
}  // namespace framelane
