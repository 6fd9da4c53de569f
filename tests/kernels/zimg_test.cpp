#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "kernels/reference.hpp"
#include "tests/kernels/test_image.hpp"
#include "tests/kernels/textbook.hpp"

// Compares with zimg, an independent and careful implementation, through FFmpeg's zscale filter. It
// computes in single precision. So a result that is within a few units in the last place of a tie
// may be rounded the other way; all other results must be equal.

namespace framelane {
namespace {

constexpr int kSide = 4096;  // for every 24-bit colour once

bool command_succeeds(const std::string& command) { return std::system(command.c_str()) == 0; }

bool have_zscale() {
  return command_succeeds("ffmpeg -hide_banner -filters 2>/dev/null | grep -q ' zscale '");
}

const char* zimg_matrix(Matrix matrix) {
  switch (matrix) {
    case Matrix::kBt601:
      return "170m";
    case Matrix::kBt709:
      return "709";
    case Matrix::kBt2020:
      return "2020_ncl";
    case Matrix::kRgb:
      break;
  }
  return "gbr";
}

std::string zimg_color(const ColorSpec& color, const char* in_or_out) {
  return std::string("matrix") + in_or_out + "=" + zimg_matrix(color.matrix) + ":range" +
         in_or_out + "=" + std::string(to_string(color.range));
}

// Runs a side x side image of three whole planes through zscale. If ffmpeg fails, so does the test,
// and the result is empty.
std::vector<std::uint8_t> zscaled(const std::vector<std::uint8_t>& planes, int side,
                                  const std::string& pixel_format, const ColorSpec& from,
                                  const ColorSpec& to) {
  std::string directory = testing::TempDir() + "framelane-zimg-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    ADD_FAILURE() << "mkdtemp failed";
    return {};
  }
  const std::string input = directory + "/in.raw";
  const std::string output = directory + "/out.yuv";
  std::ofstream(input, std::ios::binary)
      .write(reinterpret_cast<const char*>(planes.data()), std::ssize(planes));
  const std::string size = std::to_string(side) + "x" + std::to_string(side);
  const std::string filter =
      "zscale=" + zimg_color(from, "in") + ":" + zimg_color(to, "") + ":dither=none,format=yuv444p";
  const bool converted = command_succeeds("ffmpeg -v error -nostdin -y -f rawvideo -pixel_format " +
                                          pixel_format + " -video_size " + size + " -i '" + input +
                                          "' -vf '" + filter + "' -f rawvideo '" + output + "'");
  std::ifstream file(output, std::ios::binary);
  std::vector<std::uint8_t> theirs((std::istreambuf_iterator<char>(file)),
                                   std::istreambuf_iterator<char>());
  std::remove(input.c_str());
  std::remove(output.c_str());
  std::remove(directory.c_str());
  EXPECT_TRUE(converted) << filter;
  return theirs;
}

// Four units in the last place of a float in 128..256.
constexpr double kSinglePrecisionError = 4 * 0x1p-16;

// The distance of the exact value from the middle between two codes.
double distance_to_tie(const IntegerForm& form, int r, int g, int b) {
  const std::int64_t remainder = form.numerator(r, g, b) % form.denominator;
  const double fraction = static_cast<double>(remainder) / static_cast<double>(form.denominator);
  return std::abs((fraction < 0 ? fraction + 1 : fraction) - 0.5);
}

std::vector<std::uint8_t> converted(const Conversion& conversion, const TestImage& source) {
  TestImage target(conversion.target, conversion.width, conversion.height);
  convert_reference(conversion, source.const_view(), target.view());
  return target.pixels();
}

class ZimgTest : public testing::TestWithParam<IntegerMatrix> {};

TEST_P(ZimgTest, AgreesOnEveryColourThatIsNotATieInSinglePrecision) {
  if (!have_zscale()) GTEST_SKIP() << "no ffmpeg command with the zscale filter (zimg)";
  const IntegerMatrix& matrix = GetParam();

  // FFmpeg's gbrp: planes G, B, R.
  const Conversion conversion{
      kSide,       kSide, PixelFormat::kRgb24, {Matrix::kRgb, Range::kFull}, PixelFormat::kI444,
      matrix.color};
  TestImage source(conversion.source, kSide, kSide);
  constexpr std::size_t kColours = std::size_t{kSide} * kSide;
  std::vector<std::uint8_t> gbr(3 * kColours);
  std::size_t color = 0;
  for (int y = 0; y < kSide; ++y) {
    std::uint8_t* row = source.view().row(0, y);
    for (int x = 0; x < kSide; ++x, ++color, row += 3) {
      row[0] = static_cast<std::uint8_t>(color >> 16);
      row[1] = static_cast<std::uint8_t>(color >> 8);
      row[2] = static_cast<std::uint8_t>(color);
      gbr[color] = row[1];
      gbr[kColours + color] = row[2];
      gbr[2 * kColours + color] = row[0];
    }
  }
  const std::vector<std::uint8_t> theirs =
      zscaled(gbr, kSide, "gbrp", conversion.source_color, matrix.color);

  const std::vector<std::uint8_t> ours = converted(conversion, source);
  ASSERT_EQ(theirs.size(), ours.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    const int rgb = static_cast<int>(i % kColours);
    const IntegerForm& form = matrix.channels[i / kColours];
    wrong += std::abs(ours[i] - theirs[i]) != 1 ||
             distance_to_tie(form, rgb >> 16, rgb >> 8 & 255, rgb & 255) > kSinglePrecisionError;
  }
  EXPECT_EQ(wrong, 0u);
}

INSTANTIATE_TEST_SUITE_P(, ZimgTest, testing::ValuesIn(kIntegerMatrices), [](const auto& param) {
  return std::string(to_string(param.param.color.matrix)) + "_" +
         std::string(to_string(param.param.color.range));
});

struct YuvChange {
  ColorSpec from, to;
};

std::vector<YuvChange> all_yuv_changes() {
  std::vector<YuvChange> changes;
  for (const IntegerMatrix& from : kIntegerMatrices) {
    for (const IntegerMatrix& to : kIntegerMatrices) {
      if (from.color != to.color) changes.push_back({from.color, to.color});
    }
  }
  return changes;
}

struct Weights {
  double r, b;
};

Weights weights(Matrix matrix) {
  if (matrix == Matrix::kBt601) return {0.299, 0.114};
  if (matrix == Matrix::kBt709) return {0.2126, 0.0722};
  return {0.2627, 0.0593};
}

// Y, U and V before rounding: from codes to signals, R'G'B', signals and codes. A double is precise
// enough to tell the distance from a tie.
std::array<double, 3> unrounded(const YuvChange& change, const std::array<double, 3>& codes) {
  const auto& [from, to] = change;
  const bool was_limited = from.range == Range::kLimited;
  double y = was_limited ? (codes[0] - 16) / 219 : codes[0] / 255;
  double u = (codes[1] - 128) / (was_limited ? 224 : 255);
  double v = (codes[2] - 128) / (was_limited ? 224 : 255);
  if (from.matrix != to.matrix) {
    const Weights k = weights(from.matrix);
    const double r = y + 2 * (1 - k.r) * v;
    const double b = y + 2 * (1 - k.b) * u;
    const double g = (y - k.r * r - k.b * b) / (1 - k.r - k.b);
    const Weights l = weights(to.matrix);
    y = l.r * r + (1 - l.r - l.b) * g + l.b * b;
    u = (b - y) / (2 * (1 - l.b));
    v = (r - y) / (2 * (1 - l.r));
  }
  const bool limited = to.range == Range::kLimited;
  const double chroma = limited ? 224 : 255;
  return {limited ? 16 + 219 * y : 255 * y, 128 + chroma * u, 128 + chroma * v};
}

class ZimgYuvTest : public testing::TestWithParam<YuvChange> {};

TEST_P(ZimgYuvTest, AgreesOnEveryCodeThatIsNotATieInSinglePrecision) {
  if (!have_zscale()) GTEST_SKIP() << "no ffmpeg command with the zscale filter (zimg)";
  constexpr int kYuvSide = 512;
  constexpr std::size_t kPixels = std::size_t{kYuvSide} * kYuvSide;
  const auto& [from, to] = GetParam();
  const Conversion conversion{kYuvSide, kYuvSide, PixelFormat::kI444, from, PixelFormat::kI444, to};
  TestImage source(conversion.source, kYuvSide, kYuvSide);
  std::mt19937 random(8);
  source.fill_random(random);
  const std::vector<std::uint8_t> codes = source.pixels();
  const std::vector<std::uint8_t> theirs = zscaled(codes, kYuvSide, "yuv444p", from, to);

  const std::vector<std::uint8_t> ours = converted(conversion, source);
  ASSERT_EQ(theirs.size(), ours.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    const std::size_t at = i % kPixels;
    const double value = unrounded(
        GetParam(), {static_cast<double>(codes[at]), static_cast<double>(codes[kPixels + at]),
                     static_cast<double>(codes[2 * kPixels + at])})[i / kPixels];
    const double fraction = value - std::floor(value);
    wrong += std::abs(ours[i] - theirs[i]) != 1 || std::abs(fraction - 0.5) > kSinglePrecisionError;
  }
  EXPECT_EQ(wrong, 0u);
}

std::string change_name(const testing::TestParamInfo<YuvChange>& param) {
  const auto name = [](const ColorSpec& color) {
    return std::string(to_string(color.matrix)) + "_" + std::string(to_string(color.range));
  };
  return name(param.param.from) + "_to_" + name(param.param.to);
}
INSTANTIATE_TEST_SUITE_P(, ZimgYuvTest, testing::ValuesIn(all_yuv_changes()), change_name);

}  // namespace
}  // namespace framelane
