// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/packets/media.hpp"

#include <gtest/gtest.h>

#include "tests/pipeline/source/encoded_clip.hpp"

namespace framelane {
namespace {

using testing::Clip;
using testing::encode_clip;
using testing::later;

TEST(PlausibleRateTest, TheClockOfTheTimestampsIsNoRate) {
  const auto known = [](int num, int den) { return plausible_rate({num, den}).num != 0; };
  EXPECT_TRUE(known(25, 1));
  EXPECT_TRUE(known(1, 5));
  EXPECT_TRUE(known(960, 1));
  EXPECT_FALSE(known(1000, 1));
  EXPECT_FALSE(known(90'000, 1));
  EXPECT_FALSE(known(0, 1));
  EXPECT_FALSE(known(0, 0));
  EXPECT_FALSE(known(25, 0));
}

TEST(SameFormatTest, AnotherObjectOfTheSameStreamIsTheSame) {
  const Clip clip = encode_clip({.frames = 1});
  EXPECT_TRUE(same_format(*clip.format, *later(clip, 0).format));
}

TEST(SameFormatTest, AnotherSizeIsAnotherFormat) {
  EXPECT_FALSE(same_format(*encode_clip({.video = "mjpeg", .frames = 1}).format,
                           *encode_clip({.video = "mjpeg", .width = 32, .frames = 1}).format));
}

TEST(SameFormatTest, OtherHeadersAreAnotherFormat) {
  EXPECT_FALSE(same_format(*encode_clip({.frames = 1, .b_frames = 0}).format,
                           *encode_clip({.frames = 1, .b_frames = 2}).format));
}

TEST(SameFormatTest, AnotherTimeBaseIsAnotherFormat) {
  EXPECT_FALSE(same_format(*encode_clip({.video = "mjpeg", .frames = 1, .rate = 25}).format,
                           *encode_clip({.video = "mjpeg", .frames = 1, .rate = 30}).format));
}

TEST(SameFormatTest, AudioThatAppearsIsAnotherFormat) {
  EXPECT_FALSE(same_format(*encode_clip({.video = "mjpeg", .frames = 1}).format,
                           *encode_clip({.video = "mjpeg", .frames = 1, .audio = "mp2"}).format));
}

TEST(SameFormatTest, AnotherRangeIsAnotherFormat) {
  const Clip clip = encode_clip({.frames = 1});
  const Clip other = later(clip, 0);
  other.format->video.parameters->color_range = AVCOL_RANGE_JPEG;
  EXPECT_FALSE(same_format(*clip.format, *other.format));
}

TEST(SameFormatTest, APixelFormatThatWasNotProbedIsNoChange) {
  const Clip clip = encode_clip({.frames = 1});
  const Clip other = later(clip, 0);
  other.format->video.parameters->format = AV_PIX_FMT_NONE;
  EXPECT_TRUE(same_format(*clip.format, *other.format));
}

}  // namespace
}  // namespace framelane
