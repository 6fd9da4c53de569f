#include "daemon/lane_timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace framelane {
namespace {

using namespace std::chrono_literals;
using Clock = FlightRecorder::Clock;

const Clock::time_point kNow{500s};
const std::size_t kKernel = index_of(Engine::kKernel);

TEST(LaneTimelineTest, APartIsTheShareInWhichTheEngineWorked) {
  const auto recorder = std::make_shared<FlightRecorder>(100'000);
  const TraceTrack lane(recorder, "gate", "lane 2");
  const auto since = kNow - 1s;
  lane.slice(TraceKind::kKernel, since - 5ms, since + 10ms);      // part 0: all of it
  lane.slice(TraceKind::kKernel, since + 15ms, since + 22ms);     // 1: half, 2: a fifth
  lane.slice(TraceKind::kKernel, since + 30ms, since + 30100us);  // 3: a hundredth still shows
  lane.slice(TraceKind::kH2d, kNow - 10ms, kNow + 5ms);           // 99
  TraceTrack(recorder, "gate", "encode live").slice(TraceKind::kEncode, since, kNow);
  const std::vector<LaneTimeline> timelines = lane_timelines(*recorder, kNow, 10);
  ASSERT_EQ(timelines.size(), 1u);
  EXPECT_EQ(timelines[0].feed, "gate");
  EXPECT_EQ(timelines[0].lane, 2);
  EXPECT_EQ(timelines[0].engines[kKernel], "f831" + std::string(96, '0'));
  EXPECT_EQ(timelines[0].engines[index_of(Engine::kH2d)], std::string(99, '0') + "f");
  EXPECT_EQ(timelines[0].engines[index_of(Engine::kD2h)], std::string(100, '0'));
}

TEST(LaneTimelineTest, OnlyTheLastSecondCountsAndNoMoreLanesAreShownThanAskedFor) {
  const auto recorder = std::make_shared<FlightRecorder>(100'000);
  for (int i = 9; i >= 0; --i) {
    const TraceTrack lane(recorder, "gate", "lane " + std::to_string(i));
    lane.slice(TraceKind::kKernel, kNow - 30s, kNow - 29s);
    if (i % 2 == 0) lane.slice(TraceKind::kKernel, kNow - 100ms, kNow);
  }
  const std::vector<LaneTimeline> timelines = lane_timelines(*recorder, kNow, 3);
  ASSERT_EQ(timelines.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(timelines[static_cast<std::size_t>(i)].lane, 2 * i);
    EXPECT_EQ(std::ranges::count(timelines[static_cast<std::size_t>(i)].engines[kKernel], 'f'), 10);
  }
}

}  // namespace
}  // namespace framelane
