// Not built for ThreadSanitizer: one thread uses it.
#include "pipeline/measure/output_totals.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

TEST(OutputTotalsTest, RenditionsAreOneOutputAndOthersStayApart) {
  FeedStats stats("gate", {}, {"rec", "web", "web"}, 0);
  OutputStats& first = *stats.outputs()[1];
  OutputStats& second = *stats.outputs()[2];
  first.bytes = 10;
  second.bytes = 5;
  second.queue_packets = 3;
  first.drop(PacketDrop::kQueueFull, 2);
  second.drop(PacketDrop::kQueueFull);
  second.reconnects[index_of(IoFault::kIo)] = 4;
  second.retention->failed(RetentionFault::kDelete, "no right");

  const auto totals = output_totals(stats);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].name, "rec");
  EXPECT_EQ(totals[0].bytes, 0u);
  EXPECT_EQ(totals[1].name, "web");
  EXPECT_EQ(totals[1].bytes, 15u);
  EXPECT_EQ(totals[1].queue_packets, 3u);
  EXPECT_EQ(totals[1].packets_dropped[index_of(PacketDrop::kQueueFull)], 3u);
  EXPECT_EQ(totals[1].reconnects[index_of(IoFault::kIo)], 4u);
  EXPECT_EQ(totals[1].retention_faults[index_of(RetentionFault::kDelete)], 1u);
  EXPECT_EQ(totals[1].retention_reason, "no right");
}

TEST(OutputTotalsTest, WhatComesBeforeAFirstKeyframeAndWhatAStopLeavesAreNoLoss) {
  FeedStats stats("gate", {}, {"web", "web"}, 0);
  OutputStats& first = *stats.outputs()[0];
  OutputStats& second = *stats.outputs()[1];
  first.drop(PacketDrop::kWaitKeyframe, 9);
  first.drop(PacketDrop::kStop, 7);
  EXPECT_EQ(output_totals(stats).front().packets_lost, 0u);
  first.drop(PacketDrop::kQueueFull, 2);
  first.drop_dependent();
  second.drop(PacketDrop::kWriteFailed, 20);
  second.drop(PacketDrop::kDiskFull, 300);
  const OutputTotals totals = output_totals(stats).front();
  EXPECT_EQ(totals.packets_lost, 323u);
  EXPECT_EQ(totals.packets_dropped[index_of(PacketDrop::kWaitKeyframe)], 10u);
}

TEST(OutputTotalsTest, AnOutputIsUpIfAllItsRenditionsAreAndAsBadAsTheWorst) {
  FeedStats stats("gate", {}, {"web", "web"}, 0);
  OutputStats& first = *stats.outputs()[0];
  OutputStats& second = *stats.outputs()[1];
  first.set_state(first.begin_run(), FeedState::kRunning, {});
  second.set_state(second.begin_run(), FeedState::kBackoff, "the disk is full");
  const OutputTotals bad = output_totals(stats).front();
  EXPECT_FALSE(bad.up);
  EXPECT_TRUE(bad.paused);
  EXPECT_EQ(bad.state, FeedState::kBackoff);
  EXPECT_EQ(bad.reason, "the disk is full");

  first.set_state(first.begin_run(), FeedState::kConnecting, {});
  second.set_state(second.begin_run(), FeedState::kConnecting, "waits for encode p3: no memory");
  EXPECT_EQ(output_totals(stats).front().reason, "waits for encode p3: no memory");

  first.set_state(first.begin_run(), FeedState::kRunning, {});
  second.set_state(second.begin_run(), FeedState::kRunning, {});
  const OutputTotals good = output_totals(stats).front();
  EXPECT_TRUE(good.up);
  EXPECT_FALSE(good.paused);
  EXPECT_EQ(good.state, FeedState::kRunning);
  EXPECT_EQ(good.reason, "");
}

TEST(OutputTotalsTest, FaultsAreThoseOfAllRenditionsAndTheLastIsTold) {
  FeedStats stats("gate", {}, {"web", "web"}, 0);
  OutputStats& first = *stats.outputs()[0];
  OutputStats& second = *stats.outputs()[1];
  EXPECT_EQ(output_totals(stats).front().faults.count, 0u);
  const auto run = second.begin_run();
  second.set_state(run, FeedState::kBackoff, "no answer", "timeout");
  second.set_state(run, FeedState::kBackoff, "no space", "disk_full");
  EXPECT_EQ(output_totals(stats).front().faults.code, "disk_full");
  first.set_state(first.begin_run(), FeedState::kBackoff, "nobody listens", "refused");
  second.set_state(run, FeedState::kRunning, "");
  const FaultCount faults = output_totals(stats).front().faults;
  EXPECT_EQ(faults.count, 3u);
  EXPECT_EQ(faults.code, "refused");
  EXPECT_EQ(faults.reason, "nobody listens");
}

}  // namespace
}  // namespace framelane
