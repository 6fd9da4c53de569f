// Not built for ThreadSanitizer: one thread uses the class.
#include "pipeline/encode/keyframe_times.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace framelane {
namespace {

using namespace std::chrono_literals;

constexpr AVRational kMilliseconds{1, 1000};

TEST(KeyframeTimesTest, TheFirstFrameAtOrAfterEachMultipleIsDue) {
  KeyframeTimes keyframes(2s);
  EXPECT_TRUE(keyframes.due(700, kMilliseconds));  // the first one of all
  EXPECT_FALSE(keyframes.due(1999, kMilliseconds));
  EXPECT_TRUE(keyframes.due(2000, kMilliseconds));
  EXPECT_FALSE(keyframes.due(2001, kMilliseconds));
  EXPECT_TRUE(keyframes.due(4039, kMilliseconds));
  EXPECT_FALSE(keyframes.due(5999, kMilliseconds));
  EXPECT_TRUE(keyframes.due(6000, kMilliseconds));
}

TEST(KeyframeTimesTest, AGapIsFollowedByOneKeyframe) {
  KeyframeTimes keyframes(2s);
  keyframes.due(0, kMilliseconds);
  EXPECT_TRUE(keyframes.due(13'500, kMilliseconds));
  EXPECT_FALSE(keyframes.due(13'900, kMilliseconds));
  EXPECT_TRUE(keyframes.due(14'000, kMilliseconds));
}

TEST(KeyframeTimesTest, ANewTimeBaseIsNoReasonForAKeyframe) {
  KeyframeTimes keyframes(2s);
  keyframes.due(2500, kMilliseconds);
  EXPECT_FALSE(keyframes.due(90'000 * 3, {1, 90'000}));
  EXPECT_TRUE(keyframes.due(90'000 * 4, {1, 90'000}));
}

TEST(KeyframeTimesTest, AGopMayBeLong) {
  KeyframeTimes keyframes(2h);
  EXPECT_TRUE(keyframes.due(-1, kMilliseconds));
  EXPECT_TRUE(keyframes.due(0, kMilliseconds));
  EXPECT_FALSE(keyframes.due(7'199'999, kMilliseconds));
  EXPECT_TRUE(keyframes.due(7'200'000, kMilliseconds));
}

TEST(KeyframeTimesTest, WithoutAGopNoFrameIsDue) {
  KeyframeTimes keyframes(std::nullopt);
  EXPECT_FALSE(keyframes.due(0, kMilliseconds));
  EXPECT_FALSE(keyframes.due(10'000, kMilliseconds));
}

}  // namespace
}  // namespace framelane
