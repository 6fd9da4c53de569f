#include "kernels/picture_mask.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/channel.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

using Polygon = std::vector<MaskShape::Point>;
using Style = MaskShape::Style;

const Polygon kTriangle{{0.1, 0.1}, {0.9, 0.3}, {0.4, 0.95}};
const Polygon kHollow{{0, 0}, {1, 0}, {1, 1}, {0.5, 0.25}, {0, 1}};  // a notch from below
const Polygon kWhole{{0, 0}, {1, 0}, {1, 1}, {0, 1}};

/// Whether a ray from the point to the right crosses the polygon's edges an odd number of times.
bool contains(const Polygon& polygon, double x, double y) {
  bool inside = false;
  for (std::size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const auto& [ax, ay] = polygon[i];
    const auto& [bx, by] = polygon[j];
    if ((ay > y) != (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

/// Whether the sample (x, y) of a channel is covered, by the definition.
bool is_covered(const Polygon& polygon, const ConstChannel& channel, int x, int y,
                const PictureSize& size) {
  const int across = channel.half_width ? 2 : 1;
  const int down = channel.half_height ? 2 : 1;
  for (int v = y * down; v < std::min((y + 1) * down, size.height); ++v) {
    for (int u = x * across; u < std::min((x + 1) * across, size.width); ++u) {
      if (contains(polygon, (u + 0.5) / size.width, (v + 0.5) / size.height)) return true;
    }
  }
  return false;
}

class PictureMaskTest : public ::testing::TestWithParam<PixelFormat> {
 protected:
  ColorSpec color() const { return info(GetParam()).rgb ? kRgbFull : ColorSpec{}; }
  std::size_t channel_count() const { return info(GetParam()).gray ? 1 : 3; }

  std::mt19937 random_{88};
};

/// Blue in BT.709, limited range: R'G'B' 0, 0, 255.
constexpr std::array<std::uint8_t, 3> kBlueCodes{32, 240, 118};

TEST_P(PictureMaskTest, WhatLiesInThePolygonIsFilledAndNothingElse) {
  for (const PictureSize size : {PictureSize{64, 48}, {61, 47}, {7, 5}, {1, 1}}) {
    for (const Polygon& polygon : {kTriangle, kHollow, kWhole}) {
      const MaskShape shape{polygon, Style::kFill, {0, 0, 255}};
      TestImage picture(GetParam(), size.width, size.height, {.padding = 3});
      picture.fill_random(random_);
      TestImage before = picture;
      PictureMask({&shape, 1}, GetParam(), size, color()).apply(picture.view());
      const auto from = channels(before.const_view());
      const auto to = channels(picture.const_view());
      const std::array<std::uint8_t, 3> blue = {0, 0, 255};
      for (std::size_t k = 0; k < channel_count(); ++k) {
        for (int y = 0; y < to[k].height; ++y) {
          for (int x = 0; x < to[k].width; ++x) {
            const bool covered = is_covered(polygon, to[k], x, y, size);
            const int code = info(GetParam()).rgb ? blue[k] : kBlueCodes[k];
            ASSERT_EQ(to[k].at(x, y), covered ? code : from[k].at(x, y))
                << info(GetParam()).name << ' ' << size.width << 'x' << size.height << ", channel "
                << k << " at " << x << ", " << y;
          }
        }
      }
      ASSERT_TRUE(picture.padding_untouched());
    }
  }
}

TEST_P(PictureMaskTest, PixelatedPartsShowMeansOfBlocks) {
  for (const PictureSize size : {PictureSize{200, 90}, {61, 47}}) {
    for (const Polygon& polygon : {kTriangle, kHollow}) {
      const MaskShape shape{polygon, Style::kPixelate, {}};
      TestImage picture(GetParam(), size.width, size.height, {.padding = 3});
      picture.fill_random(random_);
      TestImage before = picture;
      PictureMask({&shape, 1}, GetParam(), size, color()).apply(picture.view());
      const double left = std::ranges::min(polygon, {}, &MaskShape::Point::x).x;
      const double right = std::ranges::max(polygon, {}, &MaskShape::Point::x).x;
      const double top = std::ranges::min(polygon, {}, &MaskShape::Point::y).y;
      int block = 2;
      while (16 * block < (right - left) * size.width) block += 2;
      const auto from = channels(before.const_view());
      const auto to = channels(picture.const_view());
      for (std::size_t k = 0; k < channel_count(); ++k) {
        const int across = to[k].half_width ? 2 : 1;
        const int down = to[k].half_height ? 2 : 1;
        const int first_x = static_cast<int>(left * size.width) / 2 * 2 / across;
        const int first_y = static_cast<int>(top * size.height) / 2 * 2 / down;
        const int width = block / across;
        const int height = block / down;
        for (int y = 0; y < to[k].height; ++y) {
          for (int x = 0; x < to[k].width; ++x) {
            int expected = from[k].at(x, y);
            if (is_covered(polygon, to[k], x, y, size)) {
              int sum = 0;
              int count = 0;
              const int u0 = first_x + (x - first_x) / width * width;
              const int v0 = first_y + (y - first_y) / height * height;
              for (int v = v0; v < std::min(v0 + height, to[k].height); ++v) {
                for (int u = u0; u < std::min(u0 + width, to[k].width); ++u, ++count) {
                  sum += from[k].at(u, v);
                }
              }
              expected = (2 * sum + count) / (2 * count);
            }
            ASSERT_EQ(to[k].at(x, y), expected)
                << info(GetParam()).name << ' ' << size.width << 'x' << size.height << ", channel "
                << k << " at " << x << ", " << y;
          }
        }
      }
      ASSERT_TRUE(picture.padding_untouched());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PictureMaskTest, testing::ValuesIn(kAllFormats),
                         [](const auto& test) {
                           return std::string(framelane::info(test.param).name);
                         });

// The sums of such blocks' columns are more than 16 bits have room for.
TEST(PictureMaskShapesTest, LargeBlocksShowTheMeanToo) {
  const MaskShape whole{kWhole, Style::kPixelate, {}};
  for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kBgra}) {
    TestImage picture(format, 4201, 300);
    const ImageView view = picture.view();
    for (int y = 0; y < view.height; ++y) {
      std::fill_n(view.row(0, y), plane_row_bytes(format, 0, view.width), std::uint8_t{255});
    }
    *view.row(0, 7) = 0;  // one of tens of thousands changes no mean
    const ColorSpec color = info(format).rgb ? kRgbFull : ColorSpec{};
    PictureMask({&whole, 1}, format, {view.width, view.height}, color).apply(view);
    const auto pixels = picture.pixels();
    EXPECT_EQ(std::ranges::count(pixels, 255), std::ssize(pixels)) << info(format).name;
  }
}

TEST(PictureMaskShapesTest, LaterShapesCoverEarlierOnes) {
  const std::vector<MaskShape> shapes{{kWhole, Style::kFill, {255, 255, 255}},
                                      {{{0, 0}, {0.5, 0}, {0.5, 1}, {0, 1}}, Style::kFill, {}}};
  TestImage picture(PixelFormat::kGray8, 8, 2);
  PictureMask(shapes, PixelFormat::kGray8, {8, 2}, {}).apply(picture.view());
  for (int x = 0; x < 8; ++x) EXPECT_EQ(picture.const_view().row(0, 1)[x], x < 4 ? 16 : 235);
}

/// The centre of a pixel on an edge of two shapes belongs to one of them, however they are drawn.
TEST(PictureMaskShapesTest, ShapesThatShareAnEdgeLeaveNothingBetweenThem) {
  const MaskShape::Point a{0.21, 0.38};
  const MaskShape::Point b{0.83, 0.94};
  const Polygon left{a, b, {0, 0.94}, {0, 0.38}};
  const Polygon right{a, b, {1, 0.94}, {1, 0.38}};
  const auto reversed = [](Polygon polygon) {
    std::ranges::reverse(polygon);
    return polygon;
  };
  const PictureSize size{640, 480};
  for (const Polygon& first : {left, reversed(left)}) {
    for (const Polygon& second : {right, reversed(right)}) {
      const std::vector<MaskShape> shapes{{first, Style::kFill, {}}, {second, Style::kFill, {}}};
      TestImage picture(PixelFormat::kGray8, size.width, size.height);
      for (int y = 0; y < size.height; ++y) {
        std::fill_n(picture.view().row(0, y), size.width, std::uint8_t{77});
      }
      PictureMask(shapes, PixelFormat::kGray8, size, {}).apply(picture.view());
      for (int y = 183; y < 451; ++y) {  // whose centres lie between 0.38 and 0.94
        for (int x = 0; x < size.width; ++x) {
          ASSERT_EQ(picture.const_view().row(0, y)[x], 16) << x << ", " << y;
        }
      }
    }
  }
}

TEST(PictureMaskShapesTest, NothingLiesBetweenShapesWhoseEdgesLieOnOneLine) {
  // A line of slope 1/2 goes through pixels' centres: whatever part of it a shape has, the pixels
  // on it belong to one side.
  const PictureSize size{500, 500};
  const Polygon below{{0.1, 0.1}, {0.7, 0.4}, {0.1, 0.4}};
  const std::vector<Polygon> above{{{0.1, 0.1}, {0.3, 0.2}, {0.9, 0.2}, {0.9, 0.1}},
                                   {{0.3, 0.2}, {0.562, 0.331}, {0.9, 0.331}, {0.9, 0.2}},
                                   {{0.562, 0.331}, {0.7, 0.4}, {0.9, 0.4}, {0.9, 0.331}}};
  std::vector<MaskShape> shapes{{below, Style::kFill, {}}};
  for (const Polygon& polygon : above) shapes.push_back({polygon, Style::kFill, {}});
  TestImage picture(PixelFormat::kGray8, size.width, size.height);
  for (int y = 0; y < size.height; ++y) {
    std::fill_n(picture.view().row(0, y), size.width, std::uint8_t{77});
  }
  PictureMask(shapes, PixelFormat::kGray8, size, {}).apply(picture.view());
  for (int y = 50; y < 200; ++y) {
    for (int x = 50; x < 450; ++x) {
      ASSERT_EQ(picture.const_view().row(0, y)[x], 16) << x << ", " << y;
    }
  }
}

TEST(PictureMaskShapesTest, BlocksBeginAtTheWholePixelThatTheNumbersSay) {
  // 0.58 of 100 is 58, and less in floating point.
  TestImage picture(PixelFormat::kGray8, 100, 100);
  std::mt19937 random{58};
  picture.fill_random(random);
  TestImage before = picture;
  const MaskShape shape{{{0.58, 0}, {0.9, 0}, {0.9, 1}, {0.58, 1}}, Style::kPixelate, {}};
  PictureMask({&shape, 1}, PixelFormat::kGray8, {100, 100}, {}).apply(picture.view());
  const auto old = [&](int x, int y) { return int{before.const_view().row(0, y)[x]}; };
  EXPECT_EQ(picture.const_view().row(0, 0)[58],
            (old(58, 0) + old(59, 0) + old(58, 1) + old(59, 1) + 2) / 4);
  EXPECT_EQ(picture.const_view().row(0, 0)[57], old(57, 0));
}

TEST(PictureMaskShapesTest, AShapeBetweenSamplesIsNamed) {
  const std::vector<MaskShape> shapes{{kWhole, Style::kFill, {}},
                                      {{{0.01, 0}, {0.02, 0}, {0.02, 1}}, Style::kFill, {}}};
  EXPECT_EQ(PictureMask(shapes, PixelFormat::kI420, {8, 8}, {}).first_without_cover(), 1);
  EXPECT_EQ(PictureMask(shapes, PixelFormat::kI420, {800, 8}, {}).first_without_cover(), -1);
}

TEST(PictureMaskShapesTest, WhatIsNoPolygonIsNamed) {
  const auto why = [](const Polygon& polygon) {
    const char* const reason = why_no_polygon(polygon);
    return std::string(reason == nullptr ? "" : reason);
  };
  EXPECT_EQ(why(kTriangle), "");
  EXPECT_EQ(why(kHollow), "");
  EXPECT_EQ(why({{0, 0}, {0.5, 0}, {1, 0}, {1, 1}}), "");  // a point on an edge
  EXPECT_EQ(why({{0, 0}, {1, 1}}), "has fewer than three points");
  EXPECT_EQ(why({{0, 0}, {1, 0}, {1, 1}, {0, 0}}),
            "ends with its first point again; leave that out, a polygon closes by itself");
  EXPECT_EQ(why({{0, 0}, {1, 1}, {1, 0}, {0, 1}}), "crosses itself");
  EXPECT_EQ(why({{0, 0}, {1, 0}, {1, 1}, {0.5, 0}, {0, 1}}), "crosses itself");  // it touches
  EXPECT_EQ(why({{0, 0}, {1, 0}, {0.5, 0}, {0, 1}}), "goes back on itself");
  EXPECT_EQ(why({{0, 0}, {0, 0}, {1, 0}, {0, 1}}), "has the same point twice in a row");
  EXPECT_EQ(why({{0, 0}, {1e-6, 0}, {0, 1e-6}}), "has no area");
}

}  // namespace
}  // namespace framelane
