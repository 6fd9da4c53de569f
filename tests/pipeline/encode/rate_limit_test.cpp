// Not built for ThreadSanitizer: one thread uses the class.
#include "pipeline/encode/rate_limit.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace framelane {
namespace {

constexpr AVRational kMillisecond{1, 1000};

std::vector<std::int64_t> taken(std::optional<Rational> rate, AVRational source_rate,
                                const std::vector<std::int64_t>& times_ms) {
  RateLimit limit(rate);
  std::vector<std::int64_t> result;
  for (const std::int64_t time : times_ms) {
    if (limit.takes(time, kMillisecond, source_rate)) result.push_back(time);
  }
  return result;
}

std::vector<std::int64_t> every(int ms, int end) {
  std::vector<std::int64_t> times;
  for (int time = 0; time < end; time += ms) times.push_back(time);
  return times;
}

TEST(RateLimitTest, TheFrameNearestToEachMultipleIsTaken) {
  EXPECT_EQ(taken(Rational{10}, {25, 1}, every(40, 500)),
            (std::vector<std::int64_t>{0, 80, 200, 280, 400, 480}));
  EXPECT_EQ(taken(Rational{5}, {25, 1}, every(40, 500)), (std::vector<std::int64_t>{0, 200, 400}));
  EXPECT_EQ(taken(Rational{1, 2}, {25, 1}, every(40, 4500)),
            (std::vector<std::int64_t>{0, 2000, 4000}));
}

TEST(RateLimitTest, FramesThatComeALittleEarlyOrLateAreNotLost) {
  const std::vector<std::int64_t> times{0, 41, 79, 121, 159, 200, 239, 281, 320};
  EXPECT_EQ(taken(Rational{25}, {25, 1}, times), times);
  EXPECT_EQ(taken(Rational{30'000, 1001}, {25, 1}, times), times);
}

TEST(RateLimitTest, WithoutALimitOrWithAHigherOneAllAreTaken) {
  EXPECT_EQ(taken(std::nullopt, {25, 1}, every(40, 500)), every(40, 500));
  EXPECT_EQ(taken(Rational{60}, {25, 1}, every(40, 500)), every(40, 500));
}

TEST(RateLimitTest, OfASourceWithoutARateTheFirstFrameAfterEachMultipleIsTaken) {
  EXPECT_EQ(taken(Rational{10}, {0, 1}, {0, 30, 99, 101, 150, 310, 399, 400}),
            (std::vector<std::int64_t>{0, 101, 310, 400}));
}

TEST(RateLimitTest, AfterAGapFramesAreTakenAtOnce) {
  EXPECT_EQ(taken(Rational{1}, {25, 1}, {0, 40, 9'700, 9'740, 10'000, 10'040}),
            (std::vector<std::int64_t>{0, 9'700, 10'000}));
}

}  // namespace
}  // namespace framelane
