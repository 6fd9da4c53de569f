#include "pipeline/measure/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/measure/busy_meter.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Record = FlightRecorder::Record;
using Clock = FlightRecorder::Clock;

const Clock::time_point kRecorded{100s};

std::vector<Record> all_of(const FlightRecorder& recorder,
                           Clock::time_point since = Clock::time_point::min()) {
  std::vector<Record> records;
  recorder.visit(since, [&](const Record& record) { records.push_back(record); });
  return records;
}

Record record_of(int number) {
  return {.start = kRecorded + std::chrono::seconds(number),
          .duration = std::chrono::nanoseconds(number),
          .frame = number,
          .track = static_cast<std::uint32_t>(number % 7),
          .kind = TraceKind::kEncode,
          .detail = static_cast<std::uint8_t>(number)};
}

TEST(FlightRecorderTest, TheNewestRecordsStayAndTheMemoryIsTheSame) {
  FlightRecorder recorder(4000);
  const auto capacity = static_cast<int>(recorder.capacity());
  ASSERT_GT(capacity, 50);
  EXPECT_LE(recorder.bytes(), 4000u);
  EXPECT_FALSE(recorder.oldest());
  for (int i = 0; i < 3 * capacity; ++i) recorder.record(record_of(i));
  const std::vector<Record> records = all_of(recorder);
  ASSERT_EQ(records.size(), recorder.capacity());
  for (int i = 0; i < capacity; ++i) {
    const Record& record = records[static_cast<std::size_t>(i)];
    const Record expected = record_of(2 * capacity + i);
    EXPECT_EQ(record.start, expected.start);
    EXPECT_EQ(record.duration, expected.duration);
    EXPECT_EQ(record.frame, expected.frame);
    EXPECT_EQ(record.track, expected.track);
    EXPECT_EQ(record.kind, expected.kind);
    EXPECT_EQ(record.detail, expected.detail);
  }
  EXPECT_EQ(recorder.oldest(), records[0].start + records[0].duration);
}

TEST(FlightRecorderTest, OnlyWhatEndedSinceThenIsVisited) {
  FlightRecorder recorder(4000);
  recorder.record({.start = kRecorded, .duration = 10s});
  recorder.record({.start = kRecorded + 1s, .duration = 1s});
  recorder.record({.start = kRecorded + 11s, .duration = 0s});
  EXPECT_EQ(all_of(recorder, kRecorded + 10s).size(), 2u);
  EXPECT_EQ(all_of(recorder, kRecorded + 12s).size(), 0u);
}

TEST(FlightRecorderTest, TracksKeepTheirNumbers) {
  FlightRecorder recorder(1000);
  const auto source = recorder.track("gate", "source");
  EXPECT_NE(recorder.track("yard", "source"), source);
  EXPECT_EQ(recorder.track("gate", "source"), source);
  ASSERT_EQ(recorder.tracks().size(), 2u);
  EXPECT_EQ(recorder.tracks()[source].feed, "gate");
  EXPECT_EQ(recorder.tracks()[source].name, "source");
}

// Every field of a record follows from its number, so that a mixture of two would show.
TEST(FlightRecorderTest, ARecordIsWholeHoweverManyThreadsWriteAndRead) {
  FlightRecorder recorder(2000);  // small, so that writers meet in a slot
  std::atomic<bool> done{false};
  std::atomic<int> next{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      for (int n = next++; n < 200'000; n = next++) recorder.record(record_of(n));
      done = true;
    });
  }
  int seen = 0;
  while (!done || seen == 0) {
    for (const Record& record : all_of(recorder)) {
      const Record expected = record_of(static_cast<int>(record.frame));
      ASSERT_EQ(record.start, expected.start);
      ASSERT_EQ(record.duration, expected.duration);
      ASSERT_EQ(record.track, expected.track);
      ASSERT_EQ(record.detail, expected.detail);
      ++seen;
    }
  }
  for (std::thread& writer : writers) writer.join();
}

TEST(FlightRecorderTest, SlicesOfScopesAddUpToTheirMeter) {
  const auto recorder = std::make_shared<FlightRecorder>(10'000);
  const TraceTrack track(recorder, "gate", "source");
  BusyMeter meter;
  for (int i = 0; i < 20; ++i) {
    BusyMeter::Scope scope(meter, track, TraceKind::kDecode);
    scope.set_frame(i);
  }
  std::chrono::nanoseconds sum{0};
  int frame = 0;
  for (const Record& record : all_of(*recorder)) {
    EXPECT_EQ(record.frame, frame++);
    sum += record.duration;
  }
  EXPECT_EQ(frame, 20);
  EXPECT_EQ(sum, meter.total());
}

TEST(FlightRecorderTest, AnAbandonedScopeIsNoSlice) {
  const auto recorder = std::make_shared<FlightRecorder>(10'000);
  const TraceTrack track(recorder, "gate", "source");
  BusyMeter meter;
  {
    const BusyMeter::Scope scope(meter, track, TraceKind::kDecode);
    meter.abandon_scopes();
  }
  EXPECT_TRUE(all_of(*recorder).empty());
}

TEST(FlightRecorderTest, ADroppedFrameIsOnItsEncodesTrackWithTheReason) {
  const auto recorder = std::make_shared<FlightRecorder>(10'000);
  const auto stats = std::make_shared<FeedStats>(
      "gate", FeedStats::Shape{{{"live"}, {"record"}}, {"hls", "hls"}, 1}, recorder);
  std::vector<FrameTicket> tickets(2);
  open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets, 40'000);
  tickets[0].out();
  tickets[1].drop(DropReason::kRingFull);
  const std::vector<Record> records = all_of(*recorder);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].kind, TraceKind::kDrop);
  EXPECT_EQ(records[0].frame, 40'000);
  EXPECT_EQ(records[0].detail, static_cast<int>(DropReason::kRingFull));
  const std::vector<TraceTrackName> tracks = recorder->tracks();
  EXPECT_EQ(tracks[records[0].track].name, "encode record");
  std::vector<std::string> names;
  for (const TraceTrackName& track : tracks) names.push_back(track.name);
  EXPECT_EQ(names, (std::vector<std::string>{"source", "encode live", "encode record", "output hls",
                                             "output hls 2", "lane 0"}));
}

}  // namespace
}  // namespace framelane
