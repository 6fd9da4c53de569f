#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/reference.hpp"
#include "tests/kernels/test_image.hpp"
#include "tests/kernels/textbook.hpp"

// zimg, behind FFmpeg's zscale filter, is an implementation that nobody here wrote and that is
// known to be careful. It computes in single precision, so a result within a few units in the last
// place of a tie may fall to the other side of it; everywhere else the two must agree.

namespace framelane {
namespace {

constexpr int kSide = 4096;  // every 24-bit colour once

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

// Four units in the last place of a float between 128 and 256.
constexpr double kSinglePrecisionError = 4 * 0x1p-16;

// How far the exact value is from the middle between two codes.
double distance_to_tie(const IntegerForm& form, int r, int g, int b) {
  const std::int64_t remainder = form.numerator(r, g, b) % form.denominator;
  const double fraction = static_cast<double>(remainder) / static_cast<double>(form.denominator);
  return std::abs((fraction < 0 ? fraction + 1 : fraction) - 0.5);
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
  std::array<std::vector<char>, 3> gbr;
  for (auto& plane : gbr) plane.reserve(std::size_t{kSide} * kSide);
  int color = 0;
  for (int y = 0; y < kSide; ++y) {
    std::uint8_t* row = source.view().row(0, y);
    for (int x = 0; x < kSide; ++x, ++color, row += 3) {
      row[0] = static_cast<std::uint8_t>(color >> 16);
      row[1] = static_cast<std::uint8_t>(color >> 8);
      row[2] = static_cast<std::uint8_t>(color);
      gbr[0].push_back(static_cast<char>(row[1]));
      gbr[1].push_back(static_cast<char>(row[2]));
      gbr[2].push_back(static_cast<char>(row[0]));
    }
  }
  std::string directory = testing::TempDir() + "framelane-zimg-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string input = directory + "/in.gbrp";
  const std::string output = directory + "/out.yuv";
  {
    std::ofstream file(input, std::ios::binary);
    for (const auto& plane : gbr) file.write(plane.data(), std::ssize(plane));
  }
  const std::string size = std::to_string(kSide) + "x" + std::to_string(kSide);
  const std::string filter =
      std::string("zscale=matrixin=gbr:rangein=full:matrix=") + zimg_matrix(matrix.color.matrix) +
      ":range=" + std::string(to_string(matrix.color.range)) + ":dither=none,format=yuv444p";
  const bool converted = command_succeeds(
      "ffmpeg -v error -nostdin -y -f rawvideo -pixel_format gbrp -video_size " + size + " -i '" +
      input + "' -vf '" + filter + "' -f rawvideo '" + output + "'");
  std::ifstream file(output, std::ios::binary);
  const std::vector<std::uint8_t> theirs((std::istreambuf_iterator<char>(file)),
                                         std::istreambuf_iterator<char>());
  std::remove(input.c_str());
  std::remove(output.c_str());
  std::remove(directory.c_str());
  ASSERT_TRUE(converted) << filter;

  TestImage target(conversion.target, kSide, kSide);
  convert_reference(conversion, source.const_view(), target.view());
  const std::vector<std::uint8_t> ours = target.pixels();
  ASSERT_EQ(theirs.size(), ours.size());
  constexpr std::size_t kColours = std::size_t{kSide} * kSide;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    const int rgb = static_cast<int>(i % kColours);
    const IntegerForm& form = matrix.channels[i / kColours];
    wrong += std::abs(ours[i] - theirs[i]) != 1 ||
             distance_to_tie(form, rgb >> 16, rgb >> 8 & 255, rgb & 255) > kSinglePrecisionError;
  }
  EXPECT_EQ(wrong, 0u) << filter;
}

INSTANTIATE_TEST_SUITE_P(, ZimgTest, testing::ValuesIn(kIntegerMatrices), [](const auto& param) {
  return std::string(to_string(param.param.color.matrix)) + "_" +
         std::string(to_string(param.param.color.range));
});

}  // namespace
}  // namespace framelane
