// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/feed/pacer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>

namespace framelane {
namespace {

using namespace std::chrono_literals;

constexpr Pacer::Clock::time_point kBegin{1h};

TEST(PacerTest, TheFirstTimestampIsDueAtOnceWhateverItIs) {
  Pacer pacer;
  EXPECT_FALSE(pacer.origin());
  EXPECT_EQ(pacer.due(90s, kBegin), kBegin);
  EXPECT_EQ(pacer.origin(), kBegin - 90s);
}

TEST(PacerTest, LaterTimestampsAreDueAsFarApartAsTheySay) {
  Pacer pacer;
  pacer.due(90s, kBegin);
  EXPECT_EQ(pacer.due(90s + 40ms, kBegin + 10ms), kBegin + 40ms);
  EXPECT_EQ(pacer.due(90s + 80ms, kBegin + 500ms), kBegin + 80ms);
}

TEST(PacerTest, MediaThatIsLateCatchesUp) {
  Pacer pacer;
  pacer.due(0s, kBegin);
  EXPECT_EQ(pacer.due(1s, kBegin + 6s), kBegin + 1s);
  EXPECT_EQ(pacer.due(6s, kBegin + 6s), kBegin + 6s);
}

TEST(PacerTest, AfterMoreThanFiveSecondsItStartsAnew) {
  Pacer pacer;
  pacer.due(0s, kBegin);
  EXPECT_EQ(pacer.due(1s, kBegin + 6s + 1us), kBegin + 6s + 1us);
  EXPECT_EQ(pacer.due(2s, kBegin + 6s), kBegin + 7s + 1us);
}

TEST(PacerTest, AStopEndsTheWait) {
  Pacer pacer;
  std::stop_source stop;
  stop.request_stop();
  const Pacer::Clock::time_point now = Pacer::Clock::now();
  EXPECT_FALSE(pacer.wait_until(0s, now, stop.get_token()));
  EXPECT_FALSE(pacer.wait_until(1h, now, stop.get_token()));
}

TEST(PacerTest, WhatIsDueIsNotWaitedFor) {
  Pacer pacer;
  EXPECT_TRUE(pacer.wait_until(0s, kBegin, {}));
  EXPECT_TRUE(pacer.wait_until(1h, kBegin + 1h, {}));
}

}  // namespace
}  // namespace framelane
