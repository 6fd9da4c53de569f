#include "pipeline/base/line_clock.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Moment = LineClock::Clock::time_point;

TEST(LineClockTest, SaysWhenPicturesWereTakenOnceItIsKnown) {
  LineClock clock(5s);
  EXPECT_FALSE(clock.taken_at(1s));
  clock.set_zero(3'000'000);
  EXPECT_EQ(clock.taken_at(1s), Moment(4s));
  EXPECT_FALSE(clock.taken_at(std::chrono::microseconds::max()));
  clock.forget();
  EXPECT_FALSE(clock.taken_at(1s));
}

TEST(LineClockTest, APictureOfAPacedSourceWasTakenWhenItWasDueUnlessTheSourceTellsTime) {
  LineClock clock(5s);
  clock.set_due(Moment(10s));
  EXPECT_EQ(clock.taken_at(1s), Moment(11s));
  EXPECT_FALSE(clock.taken_at(std::chrono::microseconds::max()));
  clock.arrived(Moment(100s), 0s, 0s);
  EXPECT_FALSE(clock.zero_us());
  EXPECT_FALSE(clock.gone_at());
  EXPECT_FALSE(clock.splits(1h));
  clock.set_zero(3'000'000);
  EXPECT_EQ(clock.taken_at(1s), Moment(4s));
}

TEST(LineClockTest, ASourceIsGoneOnlyIfItTellsTimeAndRecordingsMayEnd) {
  LineClock clock(5s);
  LineClock patient;
  for (LineClock* each : {&clock, &patient}) {
    each->arrived(Moment(100s), 2s, 2s);
    EXPECT_FALSE(each->gone_at());
    EXPECT_FALSE(each->splits(1h));
    each->set_zero(0);
  }
  EXPECT_EQ(clock.gone_at(), Moment(107s));
  EXPECT_FALSE(clock.splits(7s));
  EXPECT_TRUE(clock.splits(7001ms));
  EXPECT_FALSE(patient.gone_at());
  EXPECT_FALSE(patient.splits(1h));
}

TEST(LineClockTest, ASourceIsNotGoneWhileWhatItSentIsHandedOn) {
  LineClock clock(5s);
  clock.set_zero(0);
  clock.arrived(Moment(100s), 0s, 0s);
  {
    const LineClock::Busy busy(clock);
    EXPECT_GE(clock.gone_at(), LineClock::Clock::now() + 4s);
  }
  EXPECT_GE(clock.gone_at(), LineClock::Clock::now() + 4s);
}

}  // namespace
}  // namespace framelane
