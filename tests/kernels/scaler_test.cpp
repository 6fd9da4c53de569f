#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/converter.hpp"
#include "kernels/reference.hpp"
#include "kernels/scale_kernels.hpp"
#include "kernels/scaled_reference.hpp"
#include "kernels/scaler.hpp"
#include "tests/kernels/real_scaling.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

/// The whole picture, in another size.
Conversion scaled(Conversion conversion, int width, int height,
                  ScaleFilter filter = ScaleFilter::kBicubic) {
  conversion.scaling = Scaling{.crop = {0, 0, conversion.width, conversion.height},
                               .target = {width, height},
                               .place = {0, 0, width, height},
                               .filter = filter};
  return conversion;
}

std::string text_of(const Conversion& conversion) {
  const auto& [crop, target, place, filter, background, turn] = *conversion.scaling;
  return describe(conversion) + ", " + std::to_string(crop.width) + "x" +
         std::to_string(crop.height) + "+" + std::to_string(crop.x) + "+" + std::to_string(crop.y) +
         " to " + std::to_string(place.width) + "x" + std::to_string(place.height) + "+" +
         std::to_string(place.x) + "+" + std::to_string(place.y) + " of " +
         std::to_string(target.width) + "x" + std::to_string(target.height) + ", filter " +
         std::to_string(static_cast<int>(filter)) + (turn.transposed ? ", transposed" : "") +
         (turn.mirrored ? ", mirrored" : "") + (turn.upside_down ? ", upside down" : "");
}

class ScalingTest : public ::testing::Test {
 protected:
  int up_to(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int between(int least, int most) { return least + up_to(most - least + 1); }

  Orientation random_orientation() { return {up_to(2) == 0, up_to(2) == 0, up_to(2) == 0}; }

  /// Formats and colours that can be converted where sizes differ.
  Conversion random_conversion(PixelFormat source) {
    for (;;) {
      const PixelFormat target = kAllFormats[up_to(kPixelFormatCount)];
      const auto from = all_colors(source);
      const auto to = all_colors(target);
      Conversion conversion =
          scaled({between(1, 60), between(1, 40), source,
                  from[static_cast<std::size_t>(up_to(static_cast<int>(from.size())))], target,
                  to[static_cast<std::size_t>(up_to(static_cast<int>(to.size())))]},
                 between(1, 60), between(1, 40), kScaleFilters[up_to(4)]);
      conversion.scaling->orientation = random_orientation();
      if (!why_unsupported(conversion)) return conversion;
    }
  }

  std::mt19937 random_{854};
};

TEST_F(ScalingTest, EverySampleOfTheReferenceIsTheRealValueRounded) {
  for (const PixelFormat source : kAllFormats) {
    for (int turn = 0; turn < 6; ++turn) {
      const Conversion conversion = random_conversion(source);
      const PictureSize size = conversion.scaling->target;
      const PictureSize turned =
          conversion.scaling->orientation.turned({conversion.width, conversion.height});
      if (size.width == turned.width || size.height == turned.height) continue;
      TestImage picture(source, conversion.width, conversion.height);
      picture.fill_random(random_);
      TestImage result(conversion.target, size.width, size.height);
      convert_reference(conversion, picture.const_view(), result.view());
      const auto to = channels(result.const_view());
      for (std::size_t k = 0; k < (info(conversion.target).gray ? 1 : 3); ++k) {
        for (int i = 0; i < 20; ++i) {
          const int x = up_to(to[k].width);
          const int y = up_to(to[k].height);
          const long double real =
              std::clamp(real_sample(conversion, picture.const_view(), k, x, y), 0.0L, 255.0L);
          // Half up, and a little more or less than that.
          const auto least = static_cast<int>(std::floor(real + 0.5L - 1e-12L));
          const auto most = static_cast<int>(std::floor(real + 0.5L + 1e-12L));
          const int actual = to[k].at(x, y);
          ASSERT_TRUE(actual == least || actual == most)
              << text_of(conversion) << ", channel " << k << " at " << x << ", " << y << ": "
              << actual << " for " << real;
        }
      }
    }
  }
}

TEST_F(ScalingTest, NumbersThatNeedMoreThan128BitsGiveTheSame) {
  const ColorSpec from{Matrix::kBt2020, Range::kLimited};
  const ColorSpec to{Matrix::kBt709, Range::kFull};
  const Conversion conversion =
      scaled({8191, 4093, PixelFormat::kNv12, from, PixelFormat::kNv12, to}, 1013, 509,
             ScaleFilter::kSpline36);
  TestImage picture(conversion.source, conversion.width, conversion.height);
  picture.fill_random(random_);
  const ScaledSamples samples(conversion);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_FALSE(samples.sum_form(k).narrow);
  const auto channels_of_source = channels(picture.const_view());
  for (int i = 0; i < 10; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      const int x = up_to(506);
      const int y = up_to(254);
      const long double real =
          std::clamp(real_sample(conversion, picture.const_view(), k, x, y), 0.0L, 255.0L);
      EXPECT_EQ(samples.by_whole_numbers(channels_of_source, k, x, y), std::floor(real + 0.5L))
          << real;
      EXPECT_EQ(samples.at(channels_of_source, k, x, y), std::floor(real + 0.5L)) << real;
    }
  }
}

TEST_F(ScalingTest, AtTheSameSizeItIsThePlainConversion) {
  for (const PixelFormat source : kAllFormats) {
    for (int turn = 0; turn < 4; ++turn) {
      Conversion conversion = random_conversion(source);
      conversion.target_color.siting = conversion.source_color.siting;
      conversion.scaling.reset();
      if (why_unsupported(conversion)) continue;
      const int width = conversion.width;
      const int height = conversion.height;
      TestImage picture(source, width, height);
      picture.fill_random(random_);
      TestImage expected(conversion.target, width, height);
      TestImage actual(conversion.target, width, height);
      convert_reference(conversion, picture.const_view(), expected.view());
      const Conversion same_size = scaled(conversion, width, height, kScaleFilters[up_to(4)]);
      convert_reference(same_size, picture.const_view(), actual.view());
      ASSERT_EQ(actual.pixels(), expected.pixels()) << text_of(same_size);
    }
  }
}

/// Of pictures without subsampled chroma, so that nothing of this knows where chroma lies.
TEST_F(ScalingTest, ATurnedPictureIsThatOfATurnedSource) {
  for (const PixelFormat source : {PixelFormat::kBgra, PixelFormat::kRgb24, PixelFormat::kGray8}) {
    for (int turn = 0; turn < 40; ++turn) {
      Conversion conversion = random_conversion(source);
      const Orientation orientation = conversion.scaling->orientation;
      const PictureSize size = orientation.turned({conversion.width, conversion.height});
      if (up_to(2) == 0) {  // it is only turned
        conversion.scaling->target = size;
        conversion.scaling->place = {0, 0, size.width, size.height};
      }
      TestImage picture(source, conversion.width, conversion.height);
      picture.fill_random(random_);
      TestImage turned(source, size.width, size.height);
      const std::ptrdiff_t bytes = channels(picture.const_view())[0].step;
      for (int y = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          const int column = orientation.mirrored ? size.width - 1 - x : x;
          const int row = orientation.upside_down ? size.height - 1 - y : y;
          const std::uint8_t* const from = orientation.transposed
                                               ? picture.const_view().row(0, column) + row * bytes
                                               : picture.const_view().row(0, row) + column * bytes;
          std::copy_n(from, bytes, turned.view().row(0, y) + x * bytes);
        }
      }
      const PictureSize target = conversion.scaling->target;
      TestImage actual(conversion.target, target.width, target.height);
      convert_reference(conversion, picture.const_view(), actual.view());
      Conversion plain = conversion;
      plain.width = size.width;
      plain.height = size.height;
      plain.scaling->crop = {0, 0, size.width, size.height};
      plain.scaling->orientation = {};
      TestImage expected(conversion.target, target.width, target.height);
      convert_reference(plain, turned.const_view(), expected.view());
      ASSERT_EQ(actual.pixels(), expected.pixels()) << text_of(conversion);
    }
  }
}

TEST_F(ScalingTest, WhatLiesAroundThePictureHasTheBackgroundsColour) {
  Conversion conversion =
      scaled({16, 8, PixelFormat::kBgra, kRgbFull, PixelFormat::kI420, {Matrix::kBt709}}, 20, 20);
  conversion.scaling->place = {2, 4, 16, 8};
  conversion.scaling->background = {255, 255, 255};
  TestImage white(conversion.source, 16, 8);
  for (int y = 0; y < 8; ++y) std::fill_n(white.view().row(0, y), 64, std::uint8_t{0});
  TestImage result(conversion.target, 20, 20);
  convert_reference(conversion, white.const_view(), result.view());
  const ConstImageView view = result.const_view();
  EXPECT_EQ(view.row(0, 3)[2], 235);
  EXPECT_EQ(view.row(0, 4)[1], 235);
  EXPECT_EQ(view.row(0, 4)[2], 16);
  EXPECT_EQ(view.row(0, 11)[17], 16);
  EXPECT_EQ(view.row(0, 11)[18], 235);
  EXPECT_EQ(view.row(0, 12)[17], 235);
  EXPECT_EQ(view.row(1, 5)[5], 128);
}

/// Runs for every instruction set of this CPU.
class SimdScalerTest : public ScalingTest, public ::testing::WithParamInterface<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    if (best_scale_kernels() == nullptr) GTEST_SKIP() << "the reference does the work";
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }

  void expect_exact(const Conversion& conversion) {
    const PictureSize size = conversion.scaling->target;
    const auto scaler = make_scaler(conversion);
    TestImage picture(conversion.source, conversion.width, conversion.height,
                      {.padding = up_to(4), .bottom_up = up_to(2) == 0});
    picture.fill_random(random_);
    TestImage expected(conversion.target, size.width, size.height);
    TestImage actual(conversion.target, size.width, size.height, {.padding = up_to(4)});
    convert_reference(conversion, picture.const_view(), expected.view());
    // In bands, as the stage does it.
    for (int y = 0, rows = 0; y < size.height; y += rows) {
      rows = std::min(2 * between(1, 20), size.height - y);
      scaler->run(picture.const_view(), actual.view(), y, y + rows);
    }
    ASSERT_EQ(actual.pixels(), expected.pixels()) << text_of(conversion);
    ASSERT_TRUE(actual.padding_untouched()) << text_of(conversion);
  }
};

TEST_P(SimdScalerTest, EqualsTheReferenceInEveryFormat) {
  for (const PixelFormat source : kAllFormats) {
    for (int turn = 0; turn < 12 && !HasFatalFailure(); ++turn) {
      expect_exact(random_conversion(source));
    }
  }
}

TEST_P(SimdScalerTest, PartsOfAPictureGoToPartsOfAnother) {
  for (int turn = 0; turn < 40 && !HasFatalFailure(); ++turn) {
    Conversion conversion = random_conversion(kAllFormats[up_to(kPixelFormatCount)]);
    Scaling& scaling = *conversion.scaling;
    const auto part_of = [&](int width, int height) {
      const int x = 2 * up_to((width + 1) / 2);
      const int y = 2 * up_to((height + 1) / 2);
      const auto size = [&](int left) {
        return between(0, 1) == 0 ? left : (1 + up_to(left)) & ~1;
      };
      return Rect{x, y, size(width - x), size(height - y)};
    };
    scaling.crop = part_of(conversion.width, conversion.height);
    scaling.place = part_of(scaling.target.width, scaling.target.height);
    scaling.background = {static_cast<std::uint8_t>(up_to(256)), 7, 200};
    if (!why_unsupported(conversion)) expect_exact(conversion);
  }
}

/// Ratios that occur: where a mean of few samples is a tie as often as not, where weights have few
/// bits, and where tiles of the target need many columns.
TEST_P(SimdScalerTest, CommonRatiosAndFarReductionsAreExact) {
  const Conversion nv12{480, 96, PixelFormat::kNv12, {}, PixelFormat::kI420, {}};
  const Conversion bgra{480, 96, PixelFormat::kBgra, kRgbFull, PixelFormat::kNv12, {}};
  for (const Conversion& conversion : {nv12, bgra}) {
    for (const ScaleFilter filter : kScaleFilters) {
      for (const auto& [width, height] :
           {std::pair{240, 48}, {320, 64}, {160, 32}, {8, 2}, {960, 192}, {213, 43}, {480, 48}}) {
        if (HasFatalFailure()) return;
        expect_exact(scaled(conversion, width, height, filter));
      }
    }
  }
}

/// A tile's columns then need more of the source than there is room for.
TEST_P(SimdScalerTest, WidePicturesBecomeSixtyFourTimesSmaller) {
  for (const PixelFormat source : {PixelFormat::kNv12, PixelFormat::kBgra, PixelFormat::kYuyv}) {
    for (const ScaleFilter filter : kScaleFilters) {
      const ColorSpec from = info(source).rgb ? kRgbFull : ColorSpec{};
      expect_exact(scaled({8192, 8, source, from, PixelFormat::kNv12, {}}, 128, 2, filter));
      if (HasFatalFailure()) return;
    }
  }
  Conversion high = scaled({8, 8192, PixelFormat::kBgra, kRgbFull, PixelFormat::kNv12, {}}, 4, 128,
                           ScaleFilter::kSpline36);
  expect_exact(high);
  high.scaling->target = {128, 4};
  high.scaling->place = {0, 0, 128, 4};
  high.scaling->orientation.transposed = true;
  expect_exact(high);
}

INSTANTIATE_TEST_SUITE_P(Simd, SimdScalerTest,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& test) { return hwy::TargetName(test.param); });

}  // namespace
}  // namespace framelane
