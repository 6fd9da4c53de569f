#include "daemon/feed_history.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace framelane {
namespace {

using namespace std::chrono_literals;

/// The counts of a feed of 25 frames/s of which one a second is lost.
FeedCounts after(int seconds) {
  FeedCounts counts{.at = std::chrono::steady_clock::time_point(1000s) + seconds * 1s};
  const auto n = static_cast<std::uint64_t>(seconds);
  counts.decodes = true;
  counts.frames_in = 25 * n;
  counts.frames_out = 24 * n;
  counts.bytes_in = 1000 * n;
  counts.dropped[index_of(DropReason::kRingFull)] = n;
  counts.dropped[index_of(DropReason::kRate)] = 7 * n;
  counts.encode_frames = {24 * n};
  counts.output_bytes = {400 * n, 600 * n};
  counts.latency[3] = 12 * n;  // 0.5 ms to 1 ms
  counts.latency[6] = 12 * n;  // 5 ms to 10 ms
  return counts;
}

FeedHistory history_of(int seconds) {
  FeedHistory history;
  for (int i = 0; i <= seconds; ++i) history.add(after(i));
  return history;
}

TEST(FeedHistoryTest, RatesAreOverFiveSecondsAndLossesOverTen) {
  const FeedHistory history = history_of(30);
  EXPECT_DOUBLE_EQ(history.rate(&FeedCounts::frames_in).value(), 25);
  EXPECT_DOUBLE_EQ(history.rate(&FeedCounts::frames_out).value(), 24);
  EXPECT_DOUBLE_EQ(history.rate(&FeedCounts::output_bytes, 1).value(), 600);
  EXPECT_FALSE(history.rate(&FeedCounts::output_bytes, 2));
  EXPECT_EQ(history.lost_recently(), 10u);
}

TEST(FeedHistoryTest, WhatOutputsHaveLostIsToldForAMinute) {
  FeedHistory history;
  FeedCounts counts = after(0);
  counts.output_losses = {0, 2};
  counts.output_packets_lost = {9, 0};
  history.add(counts);
  counts.at += 1s;
  counts.output_losses[1] += 3;
  counts.output_packets_lost[1] += 25;
  history.add(counts);
  EXPECT_EQ(history.packets_lost_recently(0), 0u);
  EXPECT_EQ(history.packets_lost_recently(1), 25u);
  EXPECT_EQ(history.output_losses_recently(1), 3u);
  EXPECT_EQ(history.output_losses_recently(2), 0u);
  for (int i = 0; i < 60; ++i) {
    counts.at += 1s;
    history.add(counts);
  }
  EXPECT_EQ(history.packets_lost_recently(1), 0u);
  EXPECT_EQ(history.output_losses_recently(1), 0u);
}

TEST(FeedHistoryTest, AChangeOfTheRateShowsWithinFiveSeconds) {
  FeedHistory history = history_of(30);
  FeedCounts counts = after(30);
  for (int i = 0; i < 5; ++i) {
    counts.at += 1s;
    counts.frames_in += 5;
    history.add(counts);
  }
  EXPECT_DOUBLE_EQ(history.rate(&FeedCounts::frames_in).value(), 5);
}

TEST(FeedHistoryTest, ThereIsNoRateBeforeTheSecondSample) {
  FeedHistory history;
  history.add(after(3));
  EXPECT_FALSE(history.rate(&FeedCounts::frames_in));
  EXPECT_FALSE(history.latency(0.5));
  history.add(after(4));
  EXPECT_DOUBLE_EQ(history.rate(&FeedCounts::frames_in).value(), 25);
}

TEST(FeedHistoryTest, PercentilesAreThoseOfTheLastMinute) {
  FeedHistory history = history_of(90);
  EXPECT_NEAR(history.latency(0.5).value(), 0.001, 1e-9);
  EXPECT_NEAR(history.latency(0.25).value(), 0.00075, 1e-9);
  EXPECT_NEAR(history.latency(0.75).value(), 0.0075, 1e-9);
  FeedCounts counts = after(90);
  for (int i = 0; i < 61; ++i) {
    counts.at += 1s;
    counts.latency.back() += 10;  // above all bounds
    history.add(counts);
  }
  EXPECT_DOUBLE_EQ(history.latency(0.5).value(), 10);
}

TEST(FeedHistoryTest, ThePointsAreTenMinutesInStepsOfFiveSeconds) {
  const FeedHistory history = history_of(700);
  ASSERT_EQ(history.points().size(), FeedHistory::kPoints);
  EXPECT_DOUBLE_EQ(history.points().back().fps_in.value(), 25);
  EXPECT_DOUBLE_EQ(history.points().back().bits.value(), 8000);
  EXPECT_EQ(history.points().back().lost, 5u);
  EXPECT_FALSE(history_of(0).points().front().fps_in);
}

TEST(FeedHistoryTest, AnotherShapeBeginsNewRatesAndKeepsThePoints) {
  FeedHistory history = history_of(30);
  const std::size_t points = history.points().size();
  FeedCounts counts = after(31);
  counts.output_bytes = {5};  // an output is gone
  history.add(counts);
  EXPECT_FALSE(history.rate(&FeedCounts::frames_in));
  EXPECT_EQ(history.points().size(), points + 1);
  counts.at += 1s;
  counts.frames_in += 10;
  history.add(counts);
  EXPECT_DOUBLE_EQ(history.rate(&FeedCounts::frames_in).value(), 10);
}

}  // namespace
}  // namespace framelane
