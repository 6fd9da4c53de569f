#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "bench/harness/device_code.hpp"
#include "bench/harness/pictures.hpp"
#include "bench/harness/simd_loops.hpp"
#include "bench/product/convert_frames.hpp"

namespace framelane::bench {
namespace {

TEST(ClassicFormulaTest, RoundsDownAsPublished) {
  const auto down = [](double red, double green, double blue, double offset) {
    return static_cast<int>(std::floor((red + green + blue) / 256)) + static_cast<int>(offset);
  };
  for (int red = 0; red < 256; red += 5) {
    for (int green = 0; green < 256; green += 3) {
      for (int blue = 0; blue < 256; blue += 15) {
        const Yuv yuv = classic_yuv(red, green, blue);
        ASSERT_EQ(yuv.y, down(66.0 * red, 129.0 * green, 25.0 * blue, 16));
        ASSERT_EQ(yuv.u, down(-38.0 * red, -74.0 * green, 112.0 * blue, 128));
        ASSERT_EQ(yuv.v, down(112.0 * red, -94.0 * green, -18.0 * blue, 128));
      }
    }
  }
}

TEST(SimdLoopsTest, TheClassicFormulaGivesTheSameBytesAtEveryWidth) {
  // Up to some of the widest vectors of pixels, with every remainder.
  for (int width = 1; width <= 3 * 64 + 1; ++width) {
    FramePool pool;
    const std::vector<PooledImage> source =
        make_frames(pool, PixelFormat::kBgra, {"", width, 3}, 1);
    const PlainImage plain(PixelFormat::kYuv444, width, 3);
    const PlainImage simd(PixelFormat::kYuv444, width, 3);
    convert_classic(as_const(source[0].image), plain.image);
    convert_classic_simd(as_const(source[0].image), simd.image);
    // Whole rows with what lies behind their pixels, which nobody may write.
    for (int y = 0; y < 3; ++y) {
      ASSERT_EQ(std::memcmp(plain.image.row(0, y), simd.image.row(0, y),
                            static_cast<std::size_t>(plain.image.planes[0].pitch)),
                0)
          << "row " << y << " of " << width << " pixels";
    }
  }
}

TEST(SimdLoopsTest, TheClassicFormulaHoldsAtTheEndsOfEveryChannel) {
  constexpr int kValues[] = {0, 1, 127, 128, 254, 255};
  constexpr int kWidth = 6 * 6 * 6;
  std::vector<std::uint8_t> bgra, expected, got(kWidth * 3);
  for (const int red : kValues) {
    for (const int green : kValues) {
      for (const int blue : kValues) {
        for (const int channel : {blue, green, red, 255}) {
          bgra.push_back(static_cast<std::uint8_t>(channel));
        }
        const Yuv yuv = classic_yuv(red, green, blue);
        expected.insert(expected.end(), {yuv.y, yuv.u, yuv.v});
      }
    }
  }
  convert_classic_simd({PixelFormat::kBgra, kWidth, 1, {{{bgra.data(), kWidth * 4}}}},
                       {PixelFormat::kYuv444, kWidth, 1, {{{got.data(), kWidth * 3}}}});
  EXPECT_EQ(got, expected);
}

TEST(SimdLoopsTest, EveryNumberIsAddedOnce) {
  std::vector<float> numbers(150);
  float expected = 0;
  for (std::size_t count = 0; count < numbers.size(); ++count) {
    EXPECT_EQ(sum_floats(numbers.data(), count), expected) << count;
    numbers[count] = static_cast<float>(count * 7 % 61) + 1;
    expected += numbers[count];
  }
}

TEST(SimdLoopsTest, EveryWordIsReadOnce) {
  std::vector<std::uint32_t> words(150);
  std::uint32_t expected = 0;
  for (std::size_t count = 0; count < words.size(); ++count) {
    EXPECT_EQ(read_words(words.data(), count), expected) << count;
    words[count] = static_cast<std::uint32_t>(count) * 2654435761U + 1;
    expected ^= words[count];
  }
}

}  // namespace
}  // namespace framelane::bench
