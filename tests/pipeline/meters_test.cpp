#include <gtest/gtest.h>

#include "pipeline/busy_meter.hpp"
#include "pipeline/histogram.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;

const BusyMeter::Clock::time_point kStart{1000s};

TEST(BusyMeterTest, OverlappingWorkCountsOnce) {
  BusyMeter meter;
  meter.begin(kStart);
  meter.begin(kStart + 1s);
  meter.end(kStart + 2s);
  meter.end(kStart + 4s);
  EXPECT_EQ(meter.total(kStart + 10s), 4s);
}

TEST(BusyMeterTest, WorkThatStillRunsIsIncluded) {
  BusyMeter meter;
  meter.begin(kStart);
  EXPECT_EQ(meter.total(kStart + 3s), 3s);
  meter.end(kStart + 3s);
}

TEST(BusyMeterTest, RecentRatioIsTheShareOfTheLastTenSeconds) {
  BusyMeter meter;
  for (int second = 0; second < 60; ++second) {
    const auto now = kStart + std::chrono::seconds(second);
    meter.begin(now);
    meter.end(now + (second < 40 ? 900ms : 300ms));
  }
  EXPECT_NEAR(meter.recent_ratio(kStart + 59s + 300ms), 0.3, 0.04);
}

TEST(BusyMeterTest, RecentRatioOfALongOperationIsOne) {
  BusyMeter meter;
  meter.begin(kStart);
  EXPECT_NEAR(meter.recent_ratio(kStart + 100s), 1.0, 1e-9);
  meter.end(kStart + 100s);
}

TEST(BusyMeterTest, IdleMeterFallsToZero) {
  BusyMeter meter;
  EXPECT_EQ(meter.recent_ratio(kStart), 0.0);
  meter.begin(kStart);
  meter.end(kStart + 5s);
  EXPECT_NEAR(meter.recent_ratio(kStart + 5s), 1.0, 1e-9);
  EXPECT_EQ(meter.recent_ratio(kStart + 60s), 0.0);
}

TEST(HistogramTest, ValueOnABoundBelongsToThatBucket) {
  Histogram histogram;
  histogram.observe(100us);
  histogram.observe(100us + 1ns);
  const Histogram::Snapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.counts[0], 1u);
  EXPECT_EQ(snapshot.counts[1], 1u);
}

TEST(HistogramTest, LongTimesGoToTheLastBucketAndIntoTheSum) {
  Histogram histogram;
  histogram.observe(20s);
  const Histogram::Snapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.counts.back(), 1u);
  EXPECT_EQ(snapshot.count, 1u);
  EXPECT_DOUBLE_EQ(snapshot.sum_seconds, 20.0);
}

}  // namespace
}  // namespace framelane
