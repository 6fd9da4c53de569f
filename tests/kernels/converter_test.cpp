// Longer than 400 lines: all formats and instruction sets are held against the reference by the
// same helpers.
#include "kernels/converter.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/reference.hpp"
#include "kernels/row_kernels.hpp"
#include "tests/kernels/test_image.hpp"

namespace framelane {
namespace {

constexpr PixelFormat kFourByteOrders[] = {PixelFormat::kBgra, PixelFormat::kRgba,
                                           PixelFormat::kArgb, PixelFormat::kAbgr};

// Converts random pixels with the converter and with the reference, and compares every byte.
void expect_equal_to_reference(const Conversion& conversion, std::mt19937& random,
                               TestLayout layout = {}) {
  SCOPED_TRACE(describe(conversion));
  TestImage source(conversion.source, conversion.width, conversion.height, layout);
  source.fill_random(random);
  TestImage expected(conversion.target, conversion.width, conversion.height);
  convert_reference(conversion, source.const_view(), expected.view());

  TestImage actual(conversion.target, conversion.width, conversion.height, layout);
  const auto converter = Converter::make(conversion);
  converter->run(source.const_view(), actual.view(), 0, conversion.height);
  ASSERT_TRUE(actual.pixels() == expected.pixels()) << converter->name();
  ASSERT_TRUE(actual.padding_untouched()) << converter->name();
}

// Visits the conversions of four-byte RGB to 4:2:0, in one size.
template <typename Visit>
void visit_rgb_to_yuv(int width, int height, Visit visit) {
  for (const PixelFormat source : kFourByteOrders) {
    for (const PixelFormat target : {PixelFormat::kI420, PixelFormat::kNv12}) {
      for (const ColorSpec& color : all_colors(target)) {
        visit(Conversion{width, height, source, kRgbFull, target, color});
      }
    }
  }
}

// Runs with each instruction set of Highway's that this CPU has and the build contains. With
// Highway's one-lane fallback the reference does the work.
class SimdTest : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
  std::mt19937 random_{1920};
};

TEST_P(SimdTest, IsUsedForFourByteRgb) {
  if (best_row_kernels() == nullptr) GTEST_SKIP() << "the reference does the work";
  visit_rgb_to_yuv(4, 4, [](const Conversion& conversion) {
    EXPECT_STREQ(Converter::make(conversion)->name(), "rgb-to-yuv") << describe(conversion);
  });
}

TEST_P(SimdTest, IsNamed) {
  const std::map<std::string_view, std::string_view> names{
      {"AVX3_SPR", "AVX-512"}, {"AVX3_ZEN4", "AVX-512"}, {"AVX3_DL", "AVX-512"},
      {"AVX3", "AVX-512"},     {"AVX2", "AVX2"},         {"SSE4", "SSE4.1"},
      {"SSSE3", "SSSE3"},      {"SSE2", "SSE2"},         {"SCALAR", "baseline"}};
  EXPECT_EQ(simd_level(), names.at(hwy::TargetName(GetParam())));
}

TEST_P(SimdTest, EqualsTheReferenceInEveryOrderMatrixRangeAndSiting) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 2}, {2, 1}, {3, 5}, {17, 9}, {70, 6}}) {
    visit_rgb_to_yuv(width, height, [this](const Conversion& conversion) {
      expect_equal_to_reference(conversion, random_);
    });
  }
}

TEST_P(SimdTest, EqualsTheReferenceInEveryWidth) {
  for (int width = 1; width <= 70; ++width) {
    for (const Siting siting : kSitings) {
      for (const PixelFormat target : {PixelFormat::kI420, PixelFormat::kNv12}) {
        expect_equal_to_reference({width,
                                   3,
                                   PixelFormat::kBgra,
                                   kRgbFull,
                                   target,
                                   {Matrix::kBt709, Range::kLimited, siting}},
                                  random_);
      }
    }
  }
}

TEST_P(SimdTest, EqualsTheReferenceAcrossTiles) {
  for (const int width : {255, 256, 257, 287, 288, 289, 512, 513, 641}) {
    for (const Siting siting : kSitings) {
      expect_equal_to_reference({width,
                                 width == 641 ? 479 : 4,
                                 PixelFormat::kArgb,
                                 kRgbFull,
                                 PixelFormat::kI420,
                                 {Matrix::kBt2020, Range::kLimited, siting}},
                                random_);
    }
  }
}

TEST_P(SimdTest, TouchesNothingButPixelsInAnyLayout) {
  const TestLayout layouts[] = {{.padding = 0, .bottom_up = false, .guard = 64},
                                {.padding = 1, .bottom_up = false, .guard = 64},
                                {.padding = 37, .bottom_up = true, .guard = 64},
                                {.padding = 0, .bottom_up = true, .guard = 3}};
  for (const TestLayout& layout : layouts) {
    for (const int width : {1, 2, 31, 32, 33, 65, 300}) {
      for (const PixelFormat target : {PixelFormat::kI420, PixelFormat::kNv12}) {
        for (const Siting siting : kSitings) {
          expect_equal_to_reference({width,
                                     5,
                                     PixelFormat::kRgba,
                                     kRgbFull,
                                     target,
                                     {Matrix::kBt601, Range::kFull, siting}},
                                    random_, layout);
        }
      }
    }
  }
}

TEST_P(SimdTest, StreamingStoresGiveTheSameBytes) {
  // A row is two tiles, of which the second ends within a cache line, and a padded rest. The number
  // of rows is odd.
  constexpr int kWidth = 362, kHeight = 5, kPitch = 384;
  const PixelFormat targets[] = {PixelFormat::kI420, PixelFormat::kNv12, PixelFormat::kI422,
                                 PixelFormat::kI444};
  for (int turn = 0; turn < 8; ++turn) {
    const PixelFormat format = targets[turn / 2];
    const PixelFormat rgb = turn % 2 == 0 ? PixelFormat::kBgra : PixelFormat::kBgr24;
    const Conversion conversion{kWidth, kHeight, rgb, kRgbFull, format, {}};
    TestImage source(conversion.source, kWidth, kHeight);
    source.fill_random(random_);
    TestImage expected(format, kWidth, kHeight);
    convert_reference(conversion, source.const_view(), expected.view());

    alignas(64) static std::uint8_t bytes[3 * kHeight * kPitch];
    ImageView view{format, kWidth, kHeight, {}};
    std::fill(std::begin(bytes), std::end(bytes), std::uint8_t{0xA5});
    for (int plane = 0; plane < info(format).plane_count; ++plane) {
      view.planes[plane] = {bytes + plane * kHeight * kPitch, kPitch};
    }
    Converter::make(conversion, Stores::kStreaming)->run(source.const_view(), view, 0, kHeight);
    for (int plane = 0; plane < info(format).plane_count; ++plane) {
      const std::size_t used = plane_row_bytes(format, plane, kWidth);
      for (int y = 0; y < plane_rows(format, plane, kHeight); ++y) {
        const std::uint8_t* row = view.row(plane, y);
        ASSERT_TRUE(std::equal(row, row + used, expected.view().row(plane, y))) << y;
        ASSERT_EQ(std::count(row + used, row + kPitch, 0xA5),
                  static_cast<std::ptrdiff_t>(kPitch - used));
      }
    }
  }
}

// Chroma of 255.5 rounds up to 256, which must become 255 and not change the neighbouring byte.
TEST_P(SimdTest, SaturatedPrimariesAreClampedInFullRange) {
  const ColorSpec full{Matrix::kBt601, Range::kFull};
  for (const PixelFormat target : {PixelFormat::kI420, PixelFormat::kNv12}) {
    for (const int primary : {0, 1, 2}) {
      const Conversion conversion{64, 2, PixelFormat::kRgba, kRgbFull, target, full};
      TestImage source(conversion.source, 64, 2);
      for (int y = 0; y < 2; ++y) {
        for (int i = 0; i < 4 * 64; ++i) source.view().row(0, y)[i] = i % 4 == primary ? 255 : 0;
      }
      TestImage expected(target, 64, 2);
      TestImage actual(target, 64, 2);
      convert_reference(conversion, source.const_view(), expected.view());
      Converter::make(conversion)->run(source.const_view(), actual.view(), 0, 2);
      EXPECT_EQ(actual.pixels(), expected.pixels()) << info(target).name << " " << primary;
    }
  }
}

// Visits every supported pair of formats and colours with one source format.
template <typename Visit>
void visit_conversions(PixelFormat source, int width, int height, Visit visit) {
  for (const PixelFormat target : kAllFormats) {
    for (const ColorSpec& from : all_colors(source)) {
      for (const ColorSpec& to : all_colors(target)) {
        const Conversion conversion{width, height, source, from, target, to};
        if (!why_unsupported(conversion)) visit(conversion);
      }
    }
  }
}

TEST_P(SimdTest, EqualsTheReferenceInEveryFormatAndColour) {
  if (best_row_kernels() == nullptr) GTEST_SKIP() << "the reference does the work";
  for (const PixelFormat source : kAllFormats) {
    for (const auto& [width, height] : {std::pair{1, 1}, {2, 1}, {1, 2}, {3, 5}, {33, 4}}) {
      visit_conversions(source, width, height, [this](const Conversion& conversion) {
        expect_equal_to_reference(conversion, random_,
                                  {.padding = 3, .bottom_up = false, .guard = 64});
      });
      ASSERT_FALSE(HasFailure());
    }
  }
}

// Each size is tried with some of the colours, in turn, so that every pair of formats meets every
// size with several colours.
TEST_P(SimdTest, EqualsTheReferenceInEveryFormatAndSize) {
  constexpr std::pair<int, int> kSizes[] = {
      {1, 1},   {2, 1},   {1, 2},   {3, 5},   {2, 2},   {4, 3},   {5, 2},   {7, 7},  {8, 6},
      {15, 3},  {16, 2},  {17, 5},  {31, 4},  {32, 3},  {33, 2},  {63, 4},  {64, 3}, {65, 6},
      {127, 2}, {129, 3}, {130, 4}, {511, 2}, {512, 3}, {513, 4}, {1025, 5}};
  if (best_row_kernels() == nullptr) GTEST_SKIP() << "the reference does the work";
  std::size_t turn = 0;
  for (const PixelFormat source : kAllFormats) {
    for (const auto& [width, height] : kSizes) {
      const TestLayout layout{.padding = static_cast<int>(turn % 70),
                              .bottom_up = turn % 3 == 0,
                              .guard = turn % 2 == 0 ? 64 : 0};
      visit_conversions(source, width, height, [&](const Conversion& conversion) {
        if (++turn % 17 == 0) expect_equal_to_reference(conversion, random_, layout);
      });
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_P(SimdTest, EqualsTheReferenceInAPictureOfManyTiles) {
  if (best_row_kernels() == nullptr) GTEST_SKIP() << "the reference does the work";
  std::size_t turn = 0;
  for (const PixelFormat source : kAllFormats) {
    visit_conversions(source, 641, 479, [&](const Conversion& conversion) {
      if (++turn % 211 == 0) expect_equal_to_reference(conversion, random_);
    });
  }
}

std::string target_name(const testing::TestParamInfo<std::int64_t>& param) {
  return hwy::TargetName(param.param);
}
INSTANTIATE_TEST_SUITE_P(, SimdTest, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         target_name);

// All 2^24 colours, with chroma filtered over different neighbours.
class EveryColourSimdTest : public testing::TestWithParam<ColorSpec> {};

TEST_P(EveryColourSimdTest, EqualsTheReference) {
  const Conversion conversion{4096,      4096, PixelFormat::kBgra, kRgbFull, PixelFormat::kI420,
                              GetParam()};
  TestImage source(conversion.source, conversion.width, conversion.height);
  std::uint32_t color = 0;
  for (int y = 0; y < conversion.height; ++y) {
    std::uint8_t* row = source.view().row(0, y);
    for (int x = 0; x < conversion.width; ++x, ++color) {
      row[4 * x] = static_cast<std::uint8_t>(color);
      row[4 * x + 1] = static_cast<std::uint8_t>(color >> 8);
      row[4 * x + 2] = static_cast<std::uint8_t>(color >> 16);
    }
  }
  TestImage expected(conversion.target, conversion.width, conversion.height);
  TestImage actual(conversion.target, conversion.width, conversion.height);
  convert_reference(conversion, source.const_view(), expected.view());
  Converter::make(conversion)->run(source.const_view(), actual.view(), 0, conversion.height);
  EXPECT_TRUE(actual.pixels() == expected.pixels());
}

INSTANTIATE_TEST_SUITE_P(, EveryColourSimdTest,
                         testing::Values(ColorSpec{Matrix::kBt601, Range::kLimited},
                                         ColorSpec{Matrix::kBt709, Range::kLimited},
                                         ColorSpec{Matrix::kBt2020, Range::kLimited},
                                         ColorSpec{Matrix::kBt601, Range::kFull},
                                         ColorSpec{Matrix::kBt709, Range::kFull},
                                         ColorSpec{Matrix::kBt2020, Range::kFull}),
                         [](const auto& param) {
                           return std::string(to_string(param.param.matrix)) + "_" +
                                  std::string(to_string(param.param.range));
                         });

class ConverterTest : public testing::TestWithParam<PixelFormat> {
 protected:
  // Visits each supported conversion from the format under test, each with the next size.
  template <typename Visit>
  void visit_conversions(Visit visit) {
    constexpr std::pair<int, int> kSizes[] = {{1, 1},  {2, 1},  {1, 2}, {3, 5},
                                              {17, 9}, {12, 8}, {35, 4}};
    std::size_t turn = 0;
    for (const PixelFormat target : kAllFormats) {
      for (const ColorSpec& from : all_colors(GetParam())) {
        for (const ColorSpec& to : all_colors(target)) {
          const auto [width, height] = kSizes[turn++ % std::size(kSizes)];
          const Conversion conversion{width, height, GetParam(), from, target, to};
          if (!why_unsupported(conversion)) visit(conversion);
        }
      }
    }
  }
  std::mt19937 random_{1080};
};

TEST_P(ConverterTest, EqualsTheReferenceInAnyLayout) {
  const TestLayout layouts[] = {{.padding = 0, .bottom_up = false, .guard = 0},
                                {.padding = 5, .bottom_up = false, .guard = 32},
                                {.padding = 12, .bottom_up = true, .guard = 32}};
  std::size_t turn = 0;
  visit_conversions([&](const Conversion& conversion) {
    expect_equal_to_reference(conversion, random_, layouts[turn++ % std::size(layouts)]);
  });
}

TEST_P(ConverterTest, RowRangesGiveTheSameAsOneCall) {
  visit_conversions([this](const Conversion& conversion) {
    const auto [width, height, format, from, target, to, scaling, overlaid] = conversion;
    TestImage source(format, width, height);
    source.fill_random(random_);
    TestImage whole(target, width, height);
    TestImage pieces(target, width, height);
    const auto converter = Converter::make(conversion);
    converter->run(source.const_view(), whole.view(), 0, height);
    // The last piece first, because no piece may depend on another.
    for (int begin = (height - 1) / 2 * 2; begin >= 0; begin -= 2) {
      converter->run(source.const_view(), pieces.view(), begin, std::min(begin + 2, height));
    }
    ASSERT_TRUE(pieces.pixels() == whole.pixels()) << describe(conversion);
  });
}

TEST_P(ConverterTest, ARowRangeLeavesTheOtherRowsAlone) {
  visit_conversions([this](const Conversion& conversion) {
    const auto [width, height, format, from, target, to, scaling, overlaid] = conversion;
    if (height < 4) return;
    TestImage source(format, width, height);
    source.fill_random(random_);
    TestImage result(target, width, height);
    const std::uint8_t before = result.view().row(0, 0)[0];
    Converter::make(conversion)->run(source.const_view(), result.view(), 2, 4);
    const ImageView view = result.view();
    for (int plane = 0; plane < info(target).plane_count; ++plane) {
      const int step = 1 << info(target).planes[static_cast<std::size_t>(plane)].log2_height_step;
      for (int y = 0; y < plane_rows(target, plane, height); ++y) {
        if (y >= 2 / step && y < 4 / step) continue;
        for (std::size_t x = 0; x < plane_row_bytes(target, plane, width); ++x) {
          ASSERT_EQ(view.row(plane, y)[x], before) << describe(conversion) << " row " << y;
        }
      }
    }
  });
}

TEST_P(ConverterTest, PaddingOfTheSourceDoesNotMatter) {
  visit_conversions([this](const Conversion& conversion) {
    const auto [width, height, format, from, target, to, scaling, overlaid] = conversion;
    TestImage source(format, width, height, {.padding = 9, .bottom_up = false, .guard = 32});
    source.fill_random(random_);
    TestImage first(target, width, height);
    TestImage second(target, width, height);
    const auto converter = Converter::make(conversion);
    source.fill_padding(0);
    converter->run(source.const_view(), first.view(), 0, height);
    source.fill_padding(255);
    converter->run(source.const_view(), second.view(), 0, height);
    ASSERT_TRUE(first.pixels() == second.pixels()) << describe(conversion);
  });
}

INSTANTIATE_TEST_SUITE_P(, ConverterTest, testing::ValuesIn(kAllFormats), FormatName());

TEST(ConverterChoiceTest, TakesTheFastestWay) {
  const ColorSpec color;
  const bool simd = best_row_kernels() != nullptr;
  const auto name = [&](PixelFormat source, PixelFormat target, ColorSpec to,
                        Range from = Range::kLimited) {
    const ColorSpec source_color = info(source).rgb ? kRgbFull : ColorSpec{Matrix::kBt709, from};
    return std::string(Converter::make({8, 8, source, source_color, target, to})->name());
  };
  EXPECT_EQ(name(PixelFormat::kI420, PixelFormat::kI420, color), "copy");
  const std::string remap = simd ? "remap" : "reference";
  EXPECT_EQ(name(PixelFormat::kI420, PixelFormat::kNv12, color), remap);
  EXPECT_EQ(name(PixelFormat::kI422, PixelFormat::kI420, color), remap);
  EXPECT_EQ(name(PixelFormat::kUyvy, PixelFormat::kNv12, color), remap);
  for (const PixelFormat to : {PixelFormat::kI420, PixelFormat::kNv12}) {
    EXPECT_EQ(name(PixelFormat::kI420, to, {Matrix::kBt709, Range::kFull}), remap);
    EXPECT_EQ(name(PixelFormat::kNv12, to, color, Range::kFull), remap);
  }
  const std::string rows = simd ? "rows" : "reference";
  EXPECT_EQ(name(PixelFormat::kI420, PixelFormat::kI420, {Matrix::kBt601}), rows);
  EXPECT_EQ(name(PixelFormat::kI422, PixelFormat::kI420, color, Range::kFull), rows);
  const std::string pixels = simd ? "rgb-to-yuv" : "reference";
  EXPECT_EQ(name(PixelFormat::kBgr24, PixelFormat::kI420, color), pixels);
  EXPECT_EQ(name(PixelFormat::kArgb, PixelFormat::kI444, color), pixels);
}

}  // namespace
}  // namespace framelane
