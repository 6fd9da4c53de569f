#include "pipeline/measure/feed_stats.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace framelane {
namespace {

std::shared_ptr<FeedStats> make_stats() {
  return std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"live"}, {"main", true}, {"sub"}},
      std::vector<std::string>{"hls"}, 2);
}

TEST(FeedStatsTest, FrameIsInOnceForTheFeedAndOnceInEveryEncodeThatTakesFrames) {
  const auto stats = make_stats();
  std::array<FrameTicket, 2> tickets;
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
  const FeedStats::Ledger ledger = stats->ledger();
  EXPECT_EQ(ledger.frames_in, 1u);
  EXPECT_EQ(ledger.encodes[0].in, 1u);
  EXPECT_EQ(ledger.encodes[1].in, 0u);
  EXPECT_EQ(ledger.encodes[2].in, 1u);
  EXPECT_EQ(ledger.encodes[2].in_flight, 1);
  for (FrameTicket& ticket : tickets) ticket.out();
}

TEST(FeedStatsTest, TicketsEndAsOutOrDroppedWithTheirReason) {
  const auto stats = make_stats();
  std::array<FrameTicket, 2> tickets;
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
  tickets[0].out();
  tickets[1].drop(DropReason::kRingFull);
  const FeedStats::Ledger ledger = stats->ledger();
  EXPECT_EQ(ledger.encodes[0].out, 1u);
  EXPECT_EQ(ledger.encodes[2].dropped[index_of(DropReason::kRingFull)], 1u);
  EXPECT_EQ(ledger.encodes[0].in_flight, 0);
  EXPECT_EQ(ledger.encodes[2].in_flight, 0);
}

TEST(FeedStatsTest, MovedTicketCountsOnce) {
  const auto stats = make_stats();
  std::array<FrameTicket, 2> tickets;
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
  FrameTicket moved = std::move(tickets[0]);
  EXPECT_FALSE(tickets[0]);
  moved.out();
  tickets[1].out();
  EXPECT_EQ(stats->ledger().encodes[0].out, 1u);
}

TEST(FeedStatsTest, AnAbandonedRunLeavesNothingAndItsLateThreadsCountNothing) {
  const auto stats = make_stats();
  std::array<FrameTicket, 2> stuck;
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), stuck);
  const std::shared_ptr<RingJobs> jobs = stats->ring_jobs();
  ++(*jobs)[index_of(RingState::kReady)];
  AudioStats& sound = stats->encode(1).audio;
  const std::uint32_t stuck_run = sound.run();
  for (int i = 0; i < 3; ++i) sound.in(stuck_run);
  stats->abandon_run(DropReason::kFeedFailed);
  sound.in(sound.run());
  sound.in(stuck_run);
  sound.out(stuck_run);
  sound.drop(stuck_run, AudioDrop::kStop);
  std::array<FrameTicket, 2> next;
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), next);
  stuck[0].out();
  stuck[1].drop(DropReason::kStop);
  const FeedStats::Ledger ledger = stats->ledger();
  for (const std::size_t i : {0u, 2u}) {
    EXPECT_EQ(ledger.encodes[i].in, 2u);
    EXPECT_EQ(ledger.encodes[i].out, 0u);
    EXPECT_EQ(ledger.encodes[i].dropped[index_of(DropReason::kFeedFailed)], 1u);
    EXPECT_EQ(ledger.encodes[i].dropped[index_of(DropReason::kStop)], 0u);
    EXPECT_EQ(ledger.encodes[i].in_flight, 1);
  }
  EXPECT_EQ((*stats->ring_jobs())[index_of(RingState::kReady)], 0u);
  const AudioCounts heard = sound.counts();
  EXPECT_EQ(heard.in, 4u);
  EXPECT_EQ(heard.out, 0u);
  EXPECT_EQ(heard.dropped[index_of(AudioDrop::kFeedFailed)], 3u);
  EXPECT_EQ(heard.dropped[index_of(AudioDrop::kStop)], 0u);
  EXPECT_EQ(heard.in_flight, 1);
  for (FrameTicket& ticket : next) ticket.out();
}

TEST(FeedStatsTest, AnAbandonedRunIsNotHeardAnyMore) {
  const auto stats = make_stats();
  const std::uint32_t stuck = stats->run();
  stats->abandon_run(DropReason::kFeedFailed);
  stats->set_state(FeedState::kBackoff, "stuck");
  EXPECT_FALSE(stats->set_state(stuck, FeedState::kRunning, ""));
  stats->arrived(stuck);
  std::array<FrameTicket, 2> late;
  open_tickets(stats, stuck, testing::frame_lines(*stats), late);
  late[0].out();
  late[1].drop(DropReason::kStop);
  EXPECT_EQ(stats->status().state, FeedState::kBackoff);
  EXPECT_EQ(stats->last_arrival(), std::chrono::system_clock::time_point());
  const FeedStats::Ledger ledger = stats->ledger();
  EXPECT_EQ(ledger.frames_in, 0u);
  EXPECT_EQ(ledger.encodes[0].in, 0u);
  EXPECT_EQ(ledger.encodes[0].out, 0u);
  EXPECT_EQ(ledger.encodes[2].dropped[index_of(DropReason::kStop)], 0u);
  EXPECT_TRUE(stats->set_state(stats->run(), FeedState::kRunning, ""));
}

TEST(FeedStatsTest, WhatKeepsItsNameGoesOnCountingInAnotherShape) {
  const auto stats = std::make_shared<FeedStats>(
      "gate", FeedStats::Shape{{{"live"}, {"main", true}, {"sub"}}, {"hls", "hls", "files"}, 2});
  std::array<FrameTicket, 2> tickets;
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
  for (FrameTicket& ticket : tickets) ticket.out();
  const auto outputs = stats->outputs();
  const auto lanes = stats->lanes();
  for (std::size_t i = 0; i < 3; ++i) outputs[i]->bytes = i + 1;
  stats->reshape({{{"sub"}, {"live", true}, {"new"}}, {"files", "hls", "other"}, 3});
  const FeedStats::Ledger ledger = stats->ledger();
  EXPECT_EQ(ledger.frames_in, 1u);
  ASSERT_EQ(ledger.encodes.size(), 3u);
  EXPECT_EQ(ledger.encodes[0].out, 1u);  // "sub"
  EXPECT_EQ(ledger.encodes[1].out, 0u);  // "live" copies now
  EXPECT_EQ(ledger.encodes[2].in, 1u);
  EXPECT_EQ(ledger.encodes[2].dropped[index_of(DropReason::kReload)], 1u);
  EXPECT_TRUE(ledger.encodes[1].stats->copy);
  EXPECT_EQ(ledger.encodes[2].stats->name, "new");
  const auto after = stats->outputs();
  ASSERT_EQ(after.size(), 3u);
  EXPECT_EQ(after[0], outputs[2]);
  EXPECT_EQ(after[1], outputs[0]);
  EXPECT_EQ(after[2]->bytes, 0u);
  ASSERT_EQ(stats->lanes().size(), 3u);
  EXPECT_EQ(stats->lanes()[1], lanes[1]);
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
  EXPECT_EQ(stats->ledger().encodes[0].in, 2u);
  EXPECT_EQ(stats->ledger().encodes[2].in_flight, 1);
  for (FrameTicket& ticket : tickets) ticket.out();
}

TEST(FeedStatsTest, AThreadOfAnAbandonedRunCountsNothingInAnotherShape) {
  const auto stats = make_stats();
  const std::uint32_t stuck = stats->run();
  std::array<FrameTicket, 2> old;
  const auto lines = testing::frame_lines(*stats);
  open_tickets(stats, stuck, lines, old);
  stats->abandon_run(DropReason::kFeedFailed);
  stats->reshape({{{"other"}}, {}, 1});
  old[0].out();
  old[1].drop(DropReason::kStop);
  open_tickets(stats, stuck, lines, old);
  for (FrameTicket& ticket : old) ticket.out();
  const FeedStats::Ledger ledger = stats->ledger();
  EXPECT_EQ(ledger.frames_in, 1u);
  EXPECT_EQ(ledger.encodes[0].in, 1u);  // of its feed, before it was there
  EXPECT_EQ(ledger.encodes[0].dropped[index_of(DropReason::kReload)], 1u);
  EXPECT_EQ(ledger.encodes[0].out, 0u);
}

TEST(FeedStatsTest, EncodesComeAndGoWhileFramesAreInFlight) {
  const auto stats =
      std::make_shared<FeedStats>("gate", FeedStats::Shape{{{"live"}, {"gone"}}, {}, 1});
  const auto old_lines = testing::frame_lines(*stats);
  std::array<FrameTicket, 2> before;
  open_tickets(stats, stats->run(), old_lines, before);
  stats->reshape({{{"new"}, {"live"}}, {}, 1});
  // The source thread has yet to hear of it.
  std::array<FrameTicket, 2> between;
  open_tickets(stats, stats->run(), old_lines, between);
  for (FrameTicket& ticket : between) ticket.out();
  std::array<FrameTicket, 2> after;
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), after);
  for (FrameTicket& ticket : before) ticket.out();
  const FeedStats::Ledger ledger = stats->ledger();
  EXPECT_EQ(ledger.frames_in, 3U);
  ASSERT_EQ(ledger.encodes.size(), 2U);
  const FeedStats::EncodeLine& added = ledger.encodes[0];
  EXPECT_EQ(added.in, 3U);
  EXPECT_EQ(added.dropped[index_of(DropReason::kReload)], 2U);
  EXPECT_EQ(added.in_flight, 1);
  const FeedStats::EncodeLine& kept = ledger.encodes[1];
  EXPECT_EQ(kept.in, 3U);
  EXPECT_EQ(kept.out, 2U);
  EXPECT_EQ(kept.in_flight, 1);
  EXPECT_EQ(old_lines[1]->out, 2U);  // "gone" counts on, and nobody sees it
  EXPECT_EQ(old_lines[1]->in_flight, 0);
  for (FrameTicket& ticket : after) ticket.out();
}

TEST(FeedStatsTest, LedgerBalancesInEverySnapshotWhileThreadsCount) {
  const auto stats = make_stats();
  std::atomic<bool> done{false};
  std::jthread counter([&] {
    for (int i = 0; i < 20000; ++i) {
      std::array<FrameTicket, 2> tickets;
      open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
      tickets[0].out();
      tickets[1].drop(DropReason::kEncoder);
    }
    done = true;
  });
  while (!done) {
    const FeedStats::Ledger ledger = stats->ledger();
    for (const std::size_t i : {0u, 2u}) {
      const EncodeCounts& counts = ledger.encodes[i];
      std::uint64_t ended = counts.out;
      for (std::uint64_t dropped : counts.dropped) ended += dropped;
      ASSERT_EQ(counts.in, ended + static_cast<std::uint64_t>(counts.in_flight));
      ASSERT_EQ(counts.in, ledger.frames_in);
    }
  }
}

TEST(FeedStatsTest, StateKeepsItsTimeWhileItDoesNotChange) {
  const auto stats = make_stats();
  stats->set_state(FeedState::kBackoff, "refused");
  const auto since = stats->status().since;
  stats->set_state(FeedState::kBackoff, "timed out");
  EXPECT_EQ(stats->status().since, since);
  EXPECT_EQ(stats->status().reason, "timed out");
}

TEST(FeedStatsTest, NothingHasArrivedAtFirst) {
  const auto stats = make_stats();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(stats->since_arrival(before), std::chrono::steady_clock::duration::max());
  stats->arrived(stats->run());
  const auto after = std::chrono::steady_clock::now();
  const auto since = stats->since_arrival(after + std::chrono::hours(1));
  EXPECT_GE(since, std::chrono::hours(1));
  EXPECT_LE(since, std::chrono::hours(1) + (after - before));
}

TEST(FeedStatsTest, OutputIsUpExactlyWhileItRuns) {
  OutputStats output("hls");
  const std::uint64_t run = output.begin_run();
  output.set_state(run, FeedState::kRunning, "");
  EXPECT_TRUE(output.up);
  output.set_state(run, FeedState::kBackoff, "disk full");
  EXPECT_FALSE(output.up);
  EXPECT_TRUE(output.paused);
  EXPECT_EQ(output.state().second, "disk full");
}

TEST(FeedStatsTest, AnOutputsEarlierRunIsNotHeardAnyMore) {
  OutputStats output("hls");
  const std::uint64_t stuck = output.begin_run();
  const std::uint64_t present = output.begin_run();
  output.set_state(present, FeedState::kRunning, "");
  output.set_state(stuck, FeedState::kFailed, "came loose at last");
  EXPECT_EQ(output.state().first, FeedState::kRunning);
  EXPECT_TRUE(output.up);
}

#ifndef NDEBUG
TEST(FeedStatsDeathTest, LosingATicketIsABug) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto lose_a_ticket = [] {
    const auto stats = make_stats();
    std::array<FrameTicket, 2> tickets;
    open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
  };
  EXPECT_DEATH(lose_a_ticket(), "lost without being counted");
}
#endif

TEST(FaultCountTest, AFaultIsCountedWithItsCauseAndWhenTheLastPictureCame) {
  FeedStats stats("gate", {}, {}, 0);
  const auto made = stats.status().since;
  stats.set_state(FeedState::kBackoff, "nobody listens", "refused");
  EXPECT_EQ(stats.status().faults.count, 1u);
  EXPECT_EQ(stats.status().faults.worked_until, made) << "nothing has come yet";
  stats.arrived(stats.run());
  const auto arrival = stats.last_arrival();
  stats.set_state(FeedState::kRunning, "");
  EXPECT_EQ(stats.status().faults.count, 1u);
  stats.set_state(stats.run(), FeedState::kBackoff, "it is silent", "timeout");
  const FaultCount faults = stats.status().faults;
  EXPECT_EQ(faults.count, 2u);
  EXPECT_EQ(faults.code, "timeout");
  EXPECT_EQ(faults.reason, "it is silent");
  EXPECT_EQ(faults.worked_until, arrival);
  EXPECT_GE(faults.at, arrival);
}

TEST(FaultCountTest, AnAbandonedRunHasNoFaultsAnyMore) {
  FeedStats stats("gate", {}, {"rec"}, 0);
  const auto stuck = stats.run();
  stats.abandon_run(DropReason::kFeedFailed);
  EXPECT_FALSE(stats.set_state(stuck, FeedState::kBackoff, "late", "timeout"));
  EXPECT_EQ(stats.status().faults.count, 0u);
  OutputStats& output = *stats.outputs()[0];
  const auto old = output.begin_run();
  output.begin_run();
  output.set_state(old, FeedState::kFailed, "late", "timeout");
  EXPECT_EQ(output.faults().count, 0u);
}

TEST(FaultCountTest, EachReasonOfAnEncodeIsAFault) {
  EncodeStats encode("live", false, false);
  encode.set_reason({});
  EXPECT_EQ(encode.faults().count, 0u);
  encode.set_reason("no encoder");
  encode.set_reason("no encoder");
  encode.set_reason({});
  EXPECT_EQ(encode.faults().count, 2u);
  EXPECT_EQ(encode.faults().code, "encoder");
}

}  // namespace
}  // namespace framelane
