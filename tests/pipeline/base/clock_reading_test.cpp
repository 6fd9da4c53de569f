// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/base/clock_reading.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

using namespace std::chrono_literals;

TEST(ClockReadingTest, AMomentOfTheSteadyClockHasAWallTime) {
  const ClockReading reading{std::chrono::steady_clock::time_point(1000s),
                             std::chrono::system_clock::time_point(50'000s)};
  EXPECT_EQ(reading.wall_at(reading.steady), reading.wall);
  EXPECT_EQ(reading.wall_at(reading.steady - 3s), reading.wall - 3s);
  EXPECT_EQ(reading.wall_at(reading.steady + 1ms), reading.wall + 1ms);
}

}  // namespace
}  // namespace framelane
