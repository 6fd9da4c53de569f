#include "kernels/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <random>

#include "tests/kernels/oracle.hpp"
#include "tests/kernels/test_image.hpp"
#include "tests/kernels/textbook.hpp"

namespace framelane {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Triple = std::array<int, 3>;

Bytes convert(const Conversion& conversion, const Bytes& source_pixels) {
  TestImage source(conversion.source, conversion.width, conversion.height);
  std::size_t next = 0;
  const ImageView view = source.view();
  for (int plane = 0; plane < info(conversion.source).plane_count; ++plane) {
    for (int y = 0; y < plane_rows(conversion.source, plane, conversion.height); ++y) {
      for (std::size_t x = 0; x < plane_row_bytes(conversion.source, plane, conversion.width);
           ++x) {
        view.row(plane, y)[x] = source_pixels.at(next++);
      }
    }
  }
  EXPECT_EQ(next, source_pixels.size());
  TestImage target(conversion.target, conversion.width, conversion.height);
  convert_reference(conversion, source.const_view(), target.view());
  return target.pixels();
}

Triple pixel(PixelFormat format, const ColorSpec& from, const ColorSpec& to, const Triple& codes) {
  Bytes source;
  for (const int code : codes) source.push_back(static_cast<std::uint8_t>(code));
  const Bytes result = convert({1, 1, format, from, PixelFormat::kYuv444, to}, source);
  return {result[0], result[1], result[2]};
}

Triple from_rgb(const ColorSpec& to, const Triple& rgb) {
  return pixel(PixelFormat::kRgb24, kRgbFull, to, rgb);
}

struct Known {
  Triple rgb, yuv;
};

void expect_codes(const ColorSpec& to, std::initializer_list<Known> table) {
  for (const auto& [rgb, yuv] : table) {
    EXPECT_EQ(from_rgb(to, rgb), yuv) << rgb[0] << ", " << rgb[1] << ", " << rgb[2];
  }
}

// The 100 % colour bars, with the values that published tables give.
TEST(ReferenceTest, Bt601LimitedGivesTheKnownBarCodes) {
  expect_codes({Matrix::kBt601}, {{{255, 255, 255}, {235, 128, 128}},
                                  {{255, 255, 0}, {210, 16, 146}},
                                  {{0, 255, 255}, {170, 166, 16}},
                                  {{0, 255, 0}, {145, 54, 34}},
                                  {{255, 0, 255}, {106, 202, 222}},
                                  {{255, 0, 0}, {81, 90, 240}},
                                  {{0, 0, 255}, {41, 240, 110}},
                                  {{0, 0, 0}, {16, 128, 128}}});
}

TEST(ReferenceTest, Bt709LimitedGivesTheKnownBarCodes) {
  expect_codes({Matrix::kBt709}, {{{255, 255, 255}, {235, 128, 128}},
                                  {{255, 255, 0}, {219, 16, 138}},
                                  {{0, 255, 255}, {188, 154, 16}},
                                  {{0, 255, 0}, {173, 42, 26}},
                                  {{255, 0, 255}, {78, 214, 230}},
                                  {{255, 0, 0}, {63, 102, 240}},
                                  {{0, 0, 255}, {32, 240, 118}},
                                  {{0, 0, 0}, {16, 128, 128}}});
}

// Computed by hand: green's V is 128 - 224 * 0.6780 / 1.4746 = 25.008, and so on.
TEST(ReferenceTest, Bt2020LimitedPrimariesMatchTheHandComputedCodes) {
  expect_codes({Matrix::kBt2020}, {{{255, 0, 0}, {74, 97, 240}},
                                   {{0, 255, 0}, {164, 47, 25}},
                                   {{0, 0, 255}, {29, 240, 119}},
                                   {{255, 255, 255}, {235, 128, 128}}});
}

// As in JPEG. Pure red and pure blue have chroma 255.5, which rounds to 256 and is clamped to 255.
TEST(ReferenceTest, Bt601FullPrimariesMatchTheHandComputedCodes) {
  expect_codes(
      {Matrix::kBt601, Range::kFull},
      {{{255, 0, 0}, {76, 85, 255}}, {{0, 255, 0}, {150, 44, 21}}, {{0, 0, 255}, {29, 255, 107}}});
}

TEST(ReferenceTest, GraysHaveNeutralChromaInEveryMatrix) {
  for (const Matrix matrix : kYuvMatrices) {
    for (int value = 0; value < 256; ++value) {
      const int limited = (2 * (16 * 255 + value * 219) + 255) / (2 * 255);
      EXPECT_EQ(from_rgb({matrix}, {value, value, value}), (Triple{limited, 128, 128}));
      EXPECT_EQ(from_rgb({matrix, Range::kFull}, {value, value, value}), (Triple{value, 128, 128}));
    }
  }
}

TEST(ReferenceTest, LimitedRgbMapsBlackAndWhiteOntoThemselves) {
  const ColorSpec limited_rgb{Matrix::kRgb, Range::kLimited};
  for (const int value : {0, 16, 126, 235, 255}) {
    EXPECT_EQ(pixel(PixelFormat::kRgb24, limited_rgb, ColorSpec{}, {value, value, value}),
              (Triple{value, 128, 128}));
  }
}

TEST(ReferenceTest, LumaTiesRoundUp) {
  const ColorSpec full{Matrix::kBt601, Range::kFull};
  EXPECT_EQ(from_rgb(full, {0, 0, 250})[0], 29);  // 0.114 * 250 = 28.5
  EXPECT_EQ(from_rgb(full, {2, 0, 43})[0], 6);    // 0.299 * 2 + 0.114 * 43 = 5.5
  EXPECT_EQ(from_rgb(full, {3, 1, 44})[0], 7);    // 0.299 * 3 + 0.587 + 0.114 * 44 = 6.5
}

// 128 + (B' - Y') / 1.8556 is 128.5 for one step of blue and 127.5 for one step of yellow. Rounding
// away from zero or to even would give 127 or 128 for one of them.
TEST(ReferenceTest, ChromaTiesRoundUpOnBothSidesOfNeutral) {
  const ColorSpec full{Matrix::kBt709, Range::kFull};
  EXPECT_EQ(from_rgb(full, {0, 0, 1})[1], 129);
  EXPECT_EQ(from_rgb(full, {1, 1, 0})[1], 128);
}

// From the definition: luma 16 + y * 219 / 255 and its inverse, chroma 128 + (c - 128) * 224 / 255.
TEST(ReferenceTest, RangeChangesMatchTheHandComputedCodes) {
  const ColorSpec limited;
  const ColorSpec full{Matrix::kBt709, Range::kFull};
  EXPECT_EQ(pixel(PixelFormat::kYuv444, full, limited, {0, 0, 255}), (Triple{16, 16, 240}));
  EXPECT_EQ(pixel(PixelFormat::kYuv444, full, limited, {255, 128, 1}), (Triple{235, 128, 16}));
  EXPECT_EQ(pixel(PixelFormat::kYuv444, limited, full, {16, 16, 240}), (Triple{0, 1, 255}));
  EXPECT_EQ(pixel(PixelFormat::kYuv444, limited, full, {235, 128, 128}), (Triple{255, 128, 128}));
  EXPECT_EQ(pixel(PixelFormat::kYuv444, limited, full, {0, 0, 255}), (Triple{0, 0, 255}));
}

// BT.709's red bar as BT.601: Y' of (1, 0, 0) changes from 63 to 81, but for the rounding of the
// source.
TEST(ReferenceTest, MatrixChangesKeepTheColour) {
  const Triple red =
      pixel(PixelFormat::kYuv444, {Matrix::kBt709}, {Matrix::kBt601}, {63, 102, 240});
  EXPECT_NEAR(red[0], 81, 1);
  EXPECT_NEAR(red[1], 90, 1);
  EXPECT_NEAR(red[2], 240, 1);
}

// Converts an I444 picture, with one chroma sample of 192 in a plane of 128, to 4:2:0. Returns the
// U plane less 128.
std::vector<int> impulse_response(Siting siting, int width, int height, int x, int y) {
  const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  Bytes source(3 * size, 128);
  source[size + static_cast<std::size_t>(y * width + x)] = 192;
  const ColorSpec color{Matrix::kBt709, Range::kLimited, siting};
  const Bytes result =
      convert({width, height, PixelFormat::kI444, color, PixelFormat::kI420, color}, source);
  const std::size_t chroma = (result.size() - size) / 2;
  std::vector<int> response;
  for (std::size_t i = 0; i < chroma; ++i) response.push_back(result[size + i] - 128);
  return response;
}

TEST(ReferenceTest, LeftSitingWeighsOneTwoOneAcrossAndOneOneDown) {
  EXPECT_EQ(impulse_response(Siting::kLeft, 6, 4, 2, 1), (std::vector{0, 16, 0, 0, 0, 0}));
  EXPECT_EQ(impulse_response(Siting::kLeft, 6, 4, 3, 1), (std::vector{0, 8, 8, 0, 0, 0}));
}

TEST(ReferenceTest, CenterSitingIsTheMeanOfFour) {
  EXPECT_EQ(impulse_response(Siting::kCenter, 6, 4, 2, 1), (std::vector{0, 16, 0, 0, 0, 0}));
  EXPECT_EQ(impulse_response(Siting::kCenter, 6, 4, 3, 1), (std::vector{0, 16, 0, 0, 0, 0}));
}

TEST(ReferenceTest, TopLeftSitingWeighsOneTwoOneBothWays) {
  EXPECT_EQ(impulse_response(Siting::kTopLeft, 6, 4, 2, 2), (std::vector{0, 0, 0, 0, 16, 0}));
  EXPECT_EQ(impulse_response(Siting::kTopLeft, 6, 4, 3, 1), (std::vector{0, 4, 4, 0, 4, 4}));
}

TEST(ReferenceTest, EdgesRepeatTheLastPixel) {
  EXPECT_EQ(impulse_response(Siting::kLeft, 5, 3, 0, 0), (std::vector{24, 0, 0, 0, 0, 0}));
  EXPECT_EQ(impulse_response(Siting::kLeft, 5, 3, 4, 2), (std::vector{0, 0, 0, 0, 0, 48}));
  EXPECT_EQ(impulse_response(Siting::kCenter, 5, 3, 4, 2), (std::vector{0, 0, 0, 0, 0, 64}));
  EXPECT_EQ(impulse_response(Siting::kTopLeft, 5, 3, 0, 0), (std::vector{36, 0, 0, 0, 0, 0}));
}

TEST(ReferenceTest, FilterTiesRoundUpBelowNeutralToo) {
  const Bytes source = {16, 16, 16, 16, 127, 127, 128, 128, 1, 0, 0, 1};
  const ColorSpec color{Matrix::kBt709, Range::kLimited, Siting::kCenter};
  EXPECT_EQ(convert({2, 2, PixelFormat::kI444, color, PixelFormat::kI420, color}, source),
            (Bytes{16, 16, 16, 16, 128, 1}));
}

TEST(ReferenceTest, AlphaIsIgnored) {
  const Conversion conversion{1, 1, PixelFormat::kBgra, kRgbFull, PixelFormat::kYuv444, {}};
  EXPECT_EQ(convert(conversion, {10, 200, 90, 0}), convert(conversion, {10, 200, 90, 255}));
}

TEST(ReferenceTest, GrayGetsNeutralChroma) {
  EXPECT_EQ(convert({2, 1, PixelFormat::kGray8, {}, PixelFormat::kI420, {}}, {40, 200}),
            (Bytes{40, 200, 128, 128}));
}

int evaluate(const IntegerForm& form, int offset, int r, int g, int b) {
  const std::int64_t twice = 2 * form.numerator(r, g, b) + (2 * offset + 1) * form.denominator;
  return static_cast<int>(std::min<std::int64_t>(twice / (2 * form.denominator), 255));
}

class EveryColourTest : public testing::TestWithParam<IntegerMatrix> {};

TEST_P(EveryColourTest, MatchesTheIntegerFormulas) {
  const IntegerMatrix& matrix = GetParam();
  const int luma_offset = matrix.color.range == Range::kLimited ? 16 : 0;
  Conversion conversion{256,         256, PixelFormat::kRgb24, kRgbFull, PixelFormat::kYuv444,
                        matrix.color};
  TestImage source(conversion.source, 256, 256);
  TestImage target(conversion.target, 256, 256);
  const ImageView in = source.view();
  const ImageView out = target.view();
  std::int64_t wrong = 0;
  for (int r = 0; r < 256; ++r) {
    for (int g = 0; g < 256; ++g) {
      for (int b = 0; b < 256; ++b) {
        std::uint8_t* rgb = in.row(0, g) + 3 * b;
        rgb[0] = static_cast<std::uint8_t>(r);
        rgb[1] = static_cast<std::uint8_t>(g);
        rgb[2] = static_cast<std::uint8_t>(b);
      }
    }
    convert_reference(conversion, as_const(in), out);
    for (int g = 0; g < 256; ++g) {
      for (int b = 0; b < 256; ++b) {
        const std::uint8_t* yuv = out.row(0, g) + 3 * b;
        wrong += yuv[0] != evaluate(matrix.channels[0], luma_offset, r, g, b);
        wrong += yuv[1] != evaluate(matrix.channels[1], 128, r, g, b);
        wrong += yuv[2] != evaluate(matrix.channels[2], 128, r, g, b);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(, EveryColourTest, testing::ValuesIn(kIntegerMatrices),
                         [](const auto& param) {
                           return std::string(to_string(param.param.color.matrix)) + "_" +
                                  std::string(to_string(param.param.color.range));
                         });

// Every supported pair of formats and colours, each with the next size, so that each pair of
// formats meets all sizes.
class OracleTest : public testing::TestWithParam<PixelFormat> {};

TEST_P(OracleTest, EveryTargetMatchesTheTextbookEvaluation) {
  constexpr std::pair<int, int> kSizes[] = {{1, 1}, {1, 2}, {2, 1}, {3, 5}, {6, 4}, {7, 2}, {5, 7}};
  const PixelFormat format = GetParam();
  std::mt19937 random(20240229);
  std::size_t turn = 0;
  for (const PixelFormat target_format : kAllFormats) {
    if (info(target_format).rgb) continue;
    for (const ColorSpec& from : all_colors(format)) {
      for (const ColorSpec& to : all_colors(target_format)) {
        const auto [width, height] = kSizes[turn++ % std::size(kSizes)];
        const Conversion conversion{width, height, format, from, target_format, to};
        if (why_unsupported(conversion) || is_identity(conversion)) continue;
        TestImage source(format, width, height);
        TestImage target(target_format, width, height);
        source.fill_random(random);
        convert_reference(conversion, source.const_view(), target.view());
        ASSERT_EQ(target.pixels(), convert_oracle(conversion, source.const_view()))
            << describe(conversion);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, OracleTest, testing::ValuesIn(kAllFormats), FormatName());

TEST(ReferenceTest, LargeOddPicturesMatchTheTextbookEvaluation) {
  const Conversion conversions[] = {
      {161, 119, PixelFormat::kBgra, kRgbFull, PixelFormat::kNv12, {}},
      {161,
       119,
       PixelFormat::kI420,
       {Matrix::kBt2020},
       PixelFormat::kI420,
       {Matrix::kBt709, Range::kFull}},
      {161, 119, PixelFormat::kUyvy, {Matrix::kBt601}, PixelFormat::kNv12, {}}};
  std::mt19937 random(7);
  for (const Conversion& conversion : conversions) {
    TestImage source(conversion.source, conversion.width, conversion.height);
    TestImage target(conversion.target, conversion.width, conversion.height);
    source.fill_random(random);
    convert_reference(conversion, source.const_view(), target.view());
    EXPECT_EQ(target.pixels(), convert_oracle(conversion, source.const_view()))
        << describe(conversion);
  }
}

}  // namespace
}  // namespace framelane
