#include "pipeline/source/raw_layout.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

/// What gst_video_info_set_format of GStreamer 1.22 says.
struct Known {
  std::string format;
  int width;
  int height;
  std::vector<int> pitches;
  std::vector<std::size_t> offsets;
  std::size_t bytes;

  friend void PrintTo(const Known& known, std::ostream* to) {
    *to << known.format << ' ' << known.width << 'x' << known.height;
  }
};

class GStreamerLayoutTest : public ::testing::TestWithParam<Known> {};

INSTANTIATE_TEST_SUITE_P(
    Of, GStreamerLayoutTest,
    ::testing::Values(
        Known{"bgra", 43, 31, {172}, {0}, 5332}, Known{"bgra", 1, 1, {4}, {0}, 4},
        Known{"bgr24", 854, 480, {2564}, {0}, 1230720}, Known{"bgr24", 43, 31, {132}, {0}, 4092},
        Known{"bgr24", 1, 1, {4}, {0}, 4}, Known{"gray", 43, 31, {44}, {0}, 1364},
        Known{"gray", 1920, 1080, {1920}, {0}, 2073600},
        Known{"yuyv422", 854, 480, {1708}, {0}, 819840}, Known{"yuyv422", 43, 31, {88}, {0}, 2728},
        Known{"yuyv422", 45, 30, {92}, {0}, 2760}, Known{"uyvy422", 45, 30, {92}, {0}, 2760},
        Known{"uyvy422", 1, 1, {4}, {0}, 4},
        Known{"nv12", 854, 480, {856, 856}, {0, 410880}, 616320},
        Known{"nv12", 43, 31, {44, 44}, {0, 1408}, 2112},
        Known{"nv12", 45, 30, {48, 48}, {0, 1440}, 2160}, Known{"nv12", 1, 1, {4, 4}, {0, 8}, 12},
        Known{"yuv420p", 854, 480, {856, 428, 428}, {0, 410880, 513600}, 616320},
        Known{"yuv420p", 43, 31, {44, 24, 24}, {0, 1408, 1792}, 2176},
        Known{"yuv420p", 45, 30, {48, 24, 24}, {0, 1440, 1800}, 2160},
        Known{"yuv420p", 1, 1, {4, 4, 4}, {0, 8, 12}, 16},
        Known{"yuv422p", 854, 480, {856, 428, 428}, {0, 410880, 616320}, 821760},
        Known{"yuv422p", 43, 31, {44, 24, 24}, {0, 1364, 2108}, 2852},
        Known{"yuv422p", 45, 30, {48, 24, 24}, {0, 1440, 2160}, 2880},
        Known{"yuv422p", 1, 1, {4, 4, 4}, {0, 4, 8}, 12},
        Known{"yuv444p", 43, 31, {44, 44, 44}, {0, 1364, 2728}, 4092},
        Known{"yuv444p", 1, 1, {4, 4, 4}, {0, 4, 8}, 12}));

TEST_P(GStreamerLayoutTest, IsWhatGStreamerSays) {
  const Known& known = GetParam();
  const RawLayout layout = gstreamer_layout(
      {.pixel_format = known.format, .width = known.width, .height = known.height});
  EXPECT_EQ(layout.bytes, known.bytes);
  for (std::size_t plane = 0; plane < layout.pitches.size(); ++plane) {
    const bool there = plane < known.pitches.size();
    EXPECT_EQ(layout.pitches[plane], there ? known.pitches[plane] : 0) << plane;
    EXPECT_EQ(layout.offsets[plane], there ? known.offsets[plane] : 0) << plane;
  }
}

TEST(RawLayoutTest, AFormatOfWhichTheLayoutIsNotKnownIsRefused) {
  for (const char* format : {"yuv410p", "yuv420p10le", "yuva420p", "gbrp", "nv16", "pal8"}) {
    try {
      gstreamer_layout({.pixel_format = format, .width = 64, .height = 48});
      FAIL() << format;
    } catch (const FeedError& error) {
      EXPECT_EQ(error.code(), FeedFault::kConfiguration) << format;
    }
  }
}

TEST(RawLayoutTest, PackedPlanesFollowEachOther) {
  const RawLayout layout = packed_layout({.pixel_format = "yuv420p", .width = 43, .height = 31});
  EXPECT_EQ(layout.pitches, (std::array<int, 4>{43, 22, 22, 0}));
  EXPECT_EQ(layout.offsets[1], 43u * 31u);
  EXPECT_EQ(layout.offsets[2], 43u * 31u + 22u * 16u);
  EXPECT_EQ(layout.bytes, 43u * 31u + 2 * 22u * 16u);
}

TEST(RawLayoutTest, APitchPadsAllPlanesInProportion) {
  const RawLayout planar =
      packed_layout({.pixel_format = "yuv420p", .width = 40, .height = 30, .pitch = 64});
  EXPECT_EQ(planar.pitches, (std::array<int, 4>{64, 32, 32, 0}));
  const RawLayout pairs =
      packed_layout({.pixel_format = "nv12", .width = 40, .height = 30, .pitch = 64});
  EXPECT_EQ(pairs.pitches, (std::array<int, 4>{64, 64, 0, 0}));
  EXPECT_EQ(pairs.bytes, 64u * 45u);
}

}  // namespace
}  // namespace framelane
