// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/base/rate_limiter.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

using std::chrono::seconds;

class RateLimiterTest : public ::testing::Test {
 protected:
  bool admit(std::uint64_t key, int at) {
    return limiter_.admit(key, 3, "line", start_ + seconds(at));
  }
  auto ended(int at) { return limiter_.take_ended(start_ + seconds(at)); }

  RateLimiter limiter_{seconds(60)};
  RateLimiter::Clock::time_point start_ = RateLimiter::Clock::now();
};

TEST_F(RateLimiterTest, FirstLineIsAdmittedAndRepeatsAreNot) {
  EXPECT_TRUE(admit(1, 0));
  EXPECT_FALSE(admit(1, 1));
  EXPECT_TRUE(admit(2, 1));
}

TEST_F(RateLimiterTest, RepeatsAreSummedUpWhenTheWindowEnds) {
  admit(1, 0);
  for (int i = 1; i <= 5; ++i) admit(1, i);
  EXPECT_TRUE(ended(59).empty());
  const auto repeats = ended(61);
  ASSERT_EQ(repeats.size(), 1u);
  EXPECT_EQ(repeats[0].line, "line");
  EXPECT_EQ(repeats[0].tag, 3);
  EXPECT_EQ(repeats[0].times, 5u);
  EXPECT_EQ(repeats[0].span, seconds(61));
}

TEST_F(RateLimiterTest, ALineThatGoesOnIsSummedUpInEveryWindow) {
  for (int i = 0; i <= 61; ++i) admit(1, i);
  EXPECT_EQ(ended(61).size(), 1u);
  EXPECT_FALSE(admit(1, 62));
  const auto repeats = ended(121);
  ASSERT_EQ(repeats.size(), 1u);
  EXPECT_EQ(repeats[0].times, 1u);
}

TEST_F(RateLimiterTest, ALineThatDidNotRepeatIsForgotten) {
  admit(1, 0);
  EXPECT_TRUE(ended(60).empty());
  EXPECT_TRUE(admit(1, 61));
}

TEST_F(RateLimiterTest, RepeatsOfLinesThatMakeRoomAreNotLost) {
  admit(1, 0);
  admit(1, 1);
  for (std::uint64_t key = 2; key <= RateLimiter::kMaxLines + 1; ++key) EXPECT_TRUE(admit(key, 2));
  const auto repeats = ended(3);
  ASSERT_EQ(repeats.size(), 1u);
  EXPECT_EQ(repeats[0].times, 1u);
  EXPECT_TRUE(admit(1, 4));
}

}  // namespace
}  // namespace framelane
