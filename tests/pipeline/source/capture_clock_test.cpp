// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/source/capture_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/pipeline/source/timeline_fixture.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;

/// A clock of which the test says what arrives, in microseconds.
class CaptureClockTest : public ::testing::Test {
 protected:
  std::int64_t zero() const { return line.zero_us().value(); }
  /// Pictures for so many seconds, 25 a second, each `late` when it arrives.
  void run(int seconds, std::int64_t late) {
    for (const std::int64_t end = now + seconds * 1'000'000; now < end; now += 40'000) {
      clock.observe(now, now + late);
    }
  }

  LineClock line;
  CaptureClock clock{line};
  std::int64_t now = 0;
};

TEST_F(CaptureClockTest, TheLeastDelayTellsWhenPicturesWereTaken) {
  for (const std::int64_t late : {70'000, 30'000, 90'000, 50'000}) run(1, late);
  run(60, 60'000);
  EXPECT_EQ(zero(), 30'000);
  EXPECT_EQ(line.taken_at(microseconds(5'000'000)),
            LineClock::Clock::time_point(microseconds(5'030'000)));
}

TEST_F(CaptureClockTest, ADelayThatLastsForLessThanTwoMinutesChangesNothing) {
  run(10, 20'000);
  run(90, 400'000);
  EXPECT_EQ(zero(), 20'000);
  run(10, 20'000);
  EXPECT_EQ(zero(), 20'000);
}

TEST_F(CaptureClockTest, APictureThatComesSoonerThanAllBeforeMendsALargeErrorAtOnce) {
  run(1, 3'000'000);
  run(1, 20'000);
  EXPECT_EQ(zero(), 20'000);
}

TEST_F(CaptureClockTest, ASmallErrorIsMendedSlowly) {
  run(1, 90'000);
  run(10, 30'000);
  EXPECT_NEAR(static_cast<double>(zero()), 80'000, 100);
}

TEST_F(CaptureClockTest, AnOutageOfHoursLeavesNothingOfWhatWasBefore) {
  run(10, 20'000);
  now += std::int64_t{3600} * 5 * 1'000'000;
  run(1, 900'000);
  EXPECT_EQ(zero(), 900'000);
}

TEST_F(CaptureClockTest, WhatCannotBeATimeIsNotHeardOf) {
  clock.observe(INT64_MAX, 0);
  clock.observe(0, -INT64_MAX);
  EXPECT_FALSE(line.zero_us());
}

/// A day of a camera whose clock differs from ours by so many millionths.
class DriftTest : public testing::TimelineFixture, public ::testing::WithParamInterface<int> {
 protected:
  /// How long a packet is on its way: some milliseconds, but for some it is a good deal longer.
  std::int64_t delay_us() {
    const double usual = std::exponential_distribution(1 / 8000.0)(random);
    const bool held_up = std::bernoulli_distribution(0.02)(random);
    return 3000 + std::lround(held_up ? 20 * usual : usual);
  }

  std::mt19937 random{29};
};

TEST_P(DriftTest, IsFollowedSmoothlyForADay) {
  constexpr std::int64_t kDayUs = std::int64_t{24} * 3600 * 1'000'000;
  constexpr std::int64_t kStepUs = 200'000;
  begin({.time_base = {1, 90'000}, .frame_rate = {5, 1}, .live = true});
  const PacketPtr packet = make_packet();
  std::int64_t last = -1;
  double worst = 0;
  std::optional<std::int64_t> zero;
  for (std::int64_t taken_us = 0; taken_us < kDayUs; taken_us += kStepUs) {
    const std::int64_t camera_us = taken_us + taken_us * GetParam() / 1'000'000;
    packet->pts = packet->dts = camera_us * 9 / 100;
    packet->duration = kStepUs * 9 / 100;
    const auto arrived = microseconds(taken_us + delay_us());
    ASSERT_TRUE(timeline.stamp(StreamKind::kVideo, *packet, Timeline::Clock::time_point(arrived)));
    const microseconds on_line(packet->pts * 100 / 9);
    const auto said = line_clock.taken_at(on_line);
    ASSERT_TRUE(said);
    const auto error = *said - Timeline::Clock::time_point(microseconds(taken_us));
    worst = std::max(worst, std::abs(std::chrono::duration<double>(error).count()));
    if (zero) {
      ASSERT_LE(std::abs(*line_clock.zero_us() - *zero), 2000) << taken_us;
    }
    zero = line_clock.zero_us();
    ASSERT_GT(packet->dts, last);
    ASSERT_FALSE(line_clock.splits(on_line - microseconds(last * 100 / 9)));
    last = packet->dts;
  }
  EXPECT_LT(worst, 0.05);
  EXPECT_EQ(all_repairs(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Millionths, DriftTest, ::testing::Values(-200, -20, 0, 200));

}  // namespace
}  // namespace framelane
