#include "pipeline/stage/cuda/device_clock.hpp"

#include <chrono>

#include "tests/cuda_runtime/fixture.hpp"

namespace framelane {
namespace {

using Clock = DeviceClock::Clock;
using DeviceClockTest = CudaTest;

TEST_F(DeviceClockTest, AnEventsTimeIsMeasuredFromAMarkThatIsEarlier) {
  const DeviceClock clock;
  const CudaStream stream;
  const CudaEvent event(CudaEvent::Kind::kTime);
  const auto before = Clock::now();
  event.record(stream);
  stream.synchronize();
  const auto after = Clock::now();
  const auto time = clock.time_of(event, before);
  EXPECT_NE(time, before);
  // The mark's time is not known exactly, on a slow machine least of all.
  EXPECT_GT(time, before - std::chrono::seconds(5));
  EXPECT_LT(time, after + std::chrono::seconds(5));
}

TEST_F(DeviceClockTest, WhatBeganBeforeTheMarkWasKnownOrLongAfterIsNotMeasuredFromIt) {
  const auto before = Clock::now();
  const DeviceClock clock;
  const CudaStream stream;
  const CudaEvent event(CudaEvent::Kind::kTime);
  event.record(stream);
  stream.synchronize();
  EXPECT_EQ(clock.time_of(event, before), before);
  const auto late = Clock::now() + std::chrono::hours(1);
  EXPECT_EQ(clock.time_of(event, late), late);
}

TEST_F(DeviceClockTest, NoEventComesLaterThanItWasSeen) {
  DeviceClock clock;
  const CudaStream stream;
  const CudaEvent event(CudaEvent::Kind::kTime);
  const auto before = Clock::now();
  event.record(stream);
  stream.synchronize();
  const auto time = clock.time_of(event, before);
  clock.correct(event, before, time + std::chrono::seconds(1));
  EXPECT_EQ(clock.time_of(event, before), time);
  const auto seen = time - std::chrono::milliseconds(1);
  clock.correct(event, before, seen);
  EXPECT_EQ(clock.time_of(event, before), seen);
}

}  // namespace
}  // namespace framelane
