// Not built for ThreadSanitizer: what it tests has one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "pipeline/measure/busy_meter.hpp"
#include "pipeline/measure/engine_meters.hpp"
#include "pipeline/measure/histogram.hpp"

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

// Scrapes and workers read the clock before they take the lock, so that calls come out of order.
TEST(BusyMeterTest, TheTotalNeverFallsThoughWorkEndedBeforeItWasAsked) {
  BusyMeter meter;
  meter.begin(kStart);
  EXPECT_EQ(meter.total(kStart + 10s), 10s);
  meter.end(kStart + 5s);
  EXPECT_EQ(meter.total(kStart + 10s), 10s);
  meter.add(kStart + 10s, kStart + 16s);
  EXPECT_EQ(meter.total(kStart + 20s), 11s);
}

TEST(BusyMeterTest, AbandonedScopesEndAndTheirLateEndsCountNothing) {
  BusyMeter meter;
  {
    const BusyMeter::Scope stuck(meter, TraceTrack(), TraceKind::kRead);
    meter.abandon_scopes();
    const auto now = BusyMeter::Clock::now();
    EXPECT_EQ(meter.total(now + 1h), meter.total(now));
    meter.begin(now);  // of the next run
  }
  const auto now = BusyMeter::Clock::now();
  EXPECT_GE(meter.total(now + 1h) - meter.total(now), 1h);  // it still runs
  meter.end(now);
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

TEST(BusyMeterTest, SpansThatComeLateAndOutOfOrderCountOnce) {
  BusyMeter meter;
  meter.add(kStart + 4s, kStart + 6s);
  meter.add(kStart + 1s, kStart + 2s);    // before it
  meter.add(kStart + 5s, kStart + 7s);    // over its end
  meter.add(kStart, kStart + 10s);        // over both
  meter.add(kStart + 2s, kStart + 3s);    // inside
  meter.add(kStart + 12s, kStart + 12s);  // empty
  EXPECT_EQ(meter.total(kStart + 20s), 10s);
}

TEST(BusyMeterTest, SpansInAnyOrderGiveTheirUnion) {
  // Spans of random length, a little out of order, as the lanes of a device report them.
  std::mt19937 random(7);
  const auto some_ms = [&](int from, int to) {
    return std::chrono::milliseconds(std::uniform_int_distribution(from, to)(random));
  };
  std::vector<std::pair<BusyMeter::Clock::time_point, BusyMeter::Clock::time_point>> spans;
  for (int i = 0; i < 2000; ++i) {
    const auto start = kStart + i * 10ms + some_ms(0, 8);
    spans.emplace_back(start, start + some_ms(1, 12));
  }
  std::vector<bool> busy(40000);
  for (const auto& [start, end] : spans) {
    for (auto time = start; time < end; time += 1ms) {
      busy[static_cast<std::size_t>((time - kStart) / 1ms)] = true;
    }
  }
  for (std::size_t i = 0; i + 6 < spans.size(); i += 6) {
    std::shuffle(spans.begin() + static_cast<std::ptrdiff_t>(i),
                 spans.begin() + static_cast<std::ptrdiff_t>(i + 6), random);
  }
  BusyMeter meter;
  for (const auto& [start, end] : spans) meter.add(start, end);
  EXPECT_EQ(meter.total(kStart + 60s), std::count(busy.begin(), busy.end(), true) * 1ms);
}

TEST(BusyMeterTest, WhatIsOlderThanTheMemoryIsNeverCountedTwice) {
  BusyMeter meter;
  for (int i = 0; i < 100; ++i) meter.add(kStart + i * 10ms, kStart + i * 10ms + 5ms);
  meter.add(kStart, kStart + 20ms);
  EXPECT_EQ(meter.total(kStart + 10s), 500ms);
}

TEST(BusyMeterTest, SpansAndRunningWorkAreOneUnion) {
  BusyMeter meter;
  meter.begin(kStart + 2s);
  meter.add(kStart, kStart + 3s);
  EXPECT_EQ(meter.total(kStart + 4s), 4s);
  EXPECT_NEAR(meter.recent_ratio(kStart + 4s), 1.0, 1e-9);
  meter.end(kStart + 5s);
  EXPECT_EQ(meter.total(kStart + 5s), 5s);
}

TEST(BusyMeterTest, ALateSpanBelongsToTheTimeItCovers) {
  BusyMeter meter;
  meter.add(kStart + 20s, kStart + 21s);
  meter.add(kStart + 2s, kStart + 10s);
  EXPECT_EQ(meter.recent(kStart + 22s), 1s);
  EXPECT_EQ(meter.total(kStart + 22s), 9s);
}

TEST(EngineMetersTest, OverlapIsTheEnginesTimePerTimeInWhichAnyWorked) {
  EngineMeters meters;
  EXPECT_EQ(meters.overlap_ratio(kStart), 1.0);
  meters.add(Engine::kH2d, kStart, kStart + 4s);
  meters.add(Engine::kKernel, kStart + 2s, kStart + 4s);
  meters.add(Engine::kD2h, kStart + 3s, kStart + 5s);
  EXPECT_EQ(meters.any().total(kStart + 5s), 5s);
  EXPECT_EQ(meters[Engine::kKernel].total(kStart + 5s), 2s);
  EXPECT_NEAR(meters.overlap_ratio(kStart + 5s), 8.0 / 5.0, 1e-9);
  EXPECT_EQ(meters.overlap_ratio(kStart + 60s), 1.0);
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
