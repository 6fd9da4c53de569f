// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/source/timeline.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/pipeline/source/timeline_fixture.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;
constexpr std::int64_t kNone = AV_NOPTS_VALUE;

class TimelineTest : public testing::TimelineFixture {};

TEST_F(TimelineTest, VariableFrameRateIsLeftAsItIs) {
  EXPECT_EQ(videos({0, 13, 14, 900, 4800, 4801}), (Times{0, 13, 14, 900, 4800, 4801}));
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineTest, TheFirstPacketStartsAtZero) {
  EXPECT_EQ(videos({70'000, 70'040}), (Times{0, 40}));
}

TEST_F(TimelineTest, ReorderedPacketsStartWithPtsZeroAndKeepTheirDistance) {
  begin(kReordered, microseconds(0));
  EXPECT_EQ(stamp(StreamKind::kVideo, {-80, 0}), (Stamp{-80, 0}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {-40, 120}), (Stamp{-40, 120}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {0, 40}), (Stamp{0, 40}));
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineTest, TheContainersStartIsZeroForBothStreams) {
  begin(kVideo, microseconds(1'000'000));
  EXPECT_EQ(video(1200), 200);
  EXPECT_EQ(audio(1000), 0);
}

TEST_F(TimelineTest, AStartFarFromThePacketsIsNotBelieved) {
  begin(kVideo, microseconds(3'600'000'000));
  EXPECT_EQ(video(50), 0);
}

TEST_F(TimelineTest, AJumpContinuesTheLineAndThreeFramesAcceptIt) {
  EXPECT_EQ(videos({0, 40, 100'000, 100'040, 100'080, 100'125, 100'165}),
            (Times{0, 40, 80, 120, 160, 205, 245}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineTest, AJumpBackwardsIsAcceptedToo) {
  EXPECT_EQ(videos({90'000, 90'040, 0, 40, 80, 120}), (Times{0, 40, 80, 120, 160, 200}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineTest, ASingleOutlierDoesNotMoveTheLine) {
  EXPECT_EQ(videos({0, 40, 100'000, 120, 160}), (Times{0, 40, 80, 120, 160}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
}

TEST_F(TimelineTest, OutliersThatDisagreeAreNotANewLine) {
  EXPECT_EQ(videos({0, 100'000, 200'000, 300'000, 160}), (Times{0, 40, 80, 120, 160}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 3u);
}

TEST_F(TimelineTest, AudioAndVideoJumpTogetherAndStayInStep) {
  for (const std::int64_t time : {0, 40, 80}) {
    EXPECT_EQ(video(time), time);
    EXPECT_EQ(audio(time + 10), time + 10);
  }
  for (const std::int64_t time : {90'000, 90'040, 90'080}) {
    video(time);
    audio(time + 10);
  }
  EXPECT_EQ(audio(90'130) - video(90'120), 10);
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
}

TEST_F(TimelineTest, AStreamThatJumpsLaterThanTheOtherFindsTheSameLine) {
  video(0);
  audio(0);
  videos({90'000, 90'040, 90'080, 90'120});
  EXPECT_EQ(audio(40), 40);  // still from before the jump
  EXPECT_EQ(audio(90'120), 160);
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
}

// As from cameras that send sound only when there is some.
TEST_F(TimelineTest, AStreamThatPausesComesBackInStep) {
  for (std::int64_t time = 0; time <= 1000; time += 40) {
    video(time);
    audio(time);
  }
  for (std::int64_t time = 1040; time <= 20'000; time += 40) video(time);
  for (std::int64_t time = 20'000; time <= 20'200; time += 40) EXPECT_EQ(audio(time), time);
  for (std::int64_t time = 20'240; time <= 40'000; time += 40) audio(time);
  EXPECT_EQ(video(40'000), 40'000);
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineTest, AStreamThatPausesAcrossAJumpComesBackInStep) {
  video(0);
  audio(0);
  videos({90'000, 90'040, 90'080});
  for (std::int64_t time = 90'120; time <= 110'000; time += 40) video(time);
  EXPECT_EQ(audio(110'000), video(110'040) - 40);
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
}

TEST_F(TimelineTest, AWrongDurationDoesNotMoveTheLine) {
  EXPECT_EQ(video(0), 0);
  EXPECT_EQ(video(40, 1'800'000), 40);
  EXPECT_EQ(videos({80, 120, 160}), (Times{80, 120, 160}));
  EXPECT_EQ(all_repairs(), 0u);
  begin(kVideo, microseconds(0));
  EXPECT_EQ(video(0), 200);  // nor where the next segment begins
}

TEST_F(TimelineTest, AStepBackBecomesOneTick) {
  EXPECT_EQ(videos({0, 40, 20, 80}), (Times{0, 40, 41, 80}));
  EXPECT_EQ(repairs(TimestampRepair::kBackward), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineTest, AStepBackOfDtsLeavesAPtsThatIsRight) {
  begin(kReordered);
  stamp(StreamKind::kVideo, {0, 80});
  EXPECT_EQ(stamp(StreamKind::kVideo, {0, 120}), (Stamp{-79, 40}));
}

TEST_F(TimelineTest, AWrappedCounterGoesOn) {
  begin({{1, 90'000}, {25, 1}, 33, 0});
  const std::int64_t period = std::int64_t{1} << 33;
  EXPECT_EQ(video(period - 3600, 3600), 0);
  EXPECT_EQ(video(0, 3600), 3600);
  EXPECT_EQ(video(3600, 3600), 7200);
  EXPECT_EQ(repairs(TimestampRepair::kWrap), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineTest, APtsThatWrapsBeforeItsDtsKeepsItsDistance) {
  begin({{1, 90'000}, {25, 1}, 33, 2});
  const std::int64_t period = std::int64_t{1} << 33;
  EXPECT_EQ(stamp(StreamKind::kVideo, {period - 3600, 3600}, 3600), (Stamp{-7200, 0}));
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineTest, AResetCounterIsAJumpAndNoWrap) {
  begin({{1, 90'000}, {25, 1}, 33, 0});
  video(std::int64_t{1} << 32, 3600);
  EXPECT_EQ(video(0, 3600), 3600);
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
  EXPECT_EQ(repairs(TimestampRepair::kWrap), 0u);
}

TEST_F(TimelineTest, MissingTimestampsAreFilledFromTheRate) {
  video(0);
  EXPECT_EQ(stamp(StreamKind::kVideo, {kNone, kNone}, 0), (Stamp{40, 40}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {kNone, kNone}, 0), (Stamp{80, 80}));
  EXPECT_EQ(repairs(TimestampRepair::kMissing), 2u);
}

TEST_F(TimelineTest, AMissingPtsIsNotGuessedOnAStreamThatReorders) {
  begin(kReordered);
  EXPECT_EQ(stamp(StreamKind::kVideo, {0, kNone}), (Stamp{0, kNone}));
}

// As from Matroska, where the first packets have no dts.
TEST_F(TimelineTest, ADtsWorkedOutOfThePtsIsNoRepair) {
  begin(kReordered, microseconds(0));
  EXPECT_EQ(stamp(StreamKind::kVideo, {kNone, 0}), (Stamp{-80, 0}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {kNone, 120}), (Stamp{-40, 120}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {0, 40}), (Stamp{0, 40}));
  EXPECT_EQ(all_repairs(), 0u);
}

// As FFmpeg reads them from a camera with B-frames.
TEST_F(TimelineTest, AFirstPacketWithoutTimestampsIsShownFirst) {
  begin(kReordered);
  EXPECT_EQ(stamp(StreamKind::kVideo, {kNone, kNone}), (Stamp{-80, 0}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {kNone, 40}), (Stamp{-40, 40}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {40, 120}), (Stamp{40, 120}));
  EXPECT_EQ(repairs(TimestampRepair::kMissing), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineTest, AMissingDtsNeverPassesItsPts) {
  begin(kReordered, microseconds(0));
  stamp(StreamKind::kVideo, {200, 280});
  const Stamp filled = stamp(StreamKind::kVideo, {kNone, 220});
  EXPECT_EQ(filled.pts, 220);
  EXPECT_LE(filled.dts, filled.pts);
}

TEST_F(TimelineTest, APtsSecondsFromItsDtsIsNotBelieved) {
  EXPECT_EQ(stamp(StreamKind::kVideo, {0, 90'000}), (Stamp{0, 0}));
  EXPECT_EQ(repairs(TimestampRepair::kMissing), 1u);
}

TEST_F(TimelineTest, ALoopContinuesWithoutRepairs) {
  begin(kReordered, microseconds(0));
  const std::vector<Stamp> file{{-40, 0}, {0, 80}, {40, 40}};
  for (const Stamp& packet : file) stamp(StreamKind::kVideo, packet);
  begin(kReordered, microseconds(0));
  EXPECT_EQ(stamp(StreamKind::kVideo, file[0]), (Stamp{80, 120}));
  EXPECT_EQ(stamp(StreamKind::kVideo, file[1]), (Stamp{120, 200}));
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineTest, AStreamThatEndedLateJoinsTheNextLoopWithoutRepairs) {
  video(0);
  audio(0);
  audio(40);
  begin(kVideo, microseconds(0));
  EXPECT_EQ(video(0), 80);
  EXPECT_EQ(audio(-40), 41);  // priming samples from before the start
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineTest, ASourceWithAnotherTimeBaseContinuesTheLine) {
  videos({0, 40});
  begin({{1, 90'000}, {25, 1}, 33, 0});
  EXPECT_EQ(video(12'345, 3600), 80 * 90);
}

TEST_F(TimelineTest, FramesIncreaseStrictly) {
  EXPECT_EQ(timeline.stamp_frame(0, 40), 0);
  EXPECT_EQ(timeline.stamp_frame(40, 40), 40);
  EXPECT_EQ(timeline.stamp_frame(40, 40), 41);
  EXPECT_EQ(repairs(TimestampRepair::kBackward), 1u);
}

TEST_F(TimelineTest, FramesBehindAnUntimedFirstPictureKeepTheirDistance) {
  begin(kReordered);
  const std::int64_t first = stamp(StreamKind::kVideo, {kNone, kNone}).pts;
  const std::int64_t third = stamp(StreamKind::kVideo, {kNone, 1120}).pts;
  const std::int64_t second = third - 80;  // a B-frame
  ASSERT_LE(second, first);
  const std::int64_t shown = timeline.stamp_frame(first, 40).value();
  EXPECT_EQ(timeline.stamp_frame(second, 40), shown + 40);
  EXPECT_EQ(timeline.stamp_frame(third, 40), shown + 120);
  EXPECT_EQ(repairs(TimestampRepair::kBackward), 0u);
}

TEST_F(TimelineTest, AFrameWithoutPtsFollowsTheLast) {
  timeline.stamp_frame(100, 40);
  EXPECT_EQ(timeline.stamp_frame(kNone, 30), 130);
  EXPECT_EQ(repairs(TimestampRepair::kMissing), 1u);
}

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST_F(TimelineTest, APtsBelowItsDtsLowersTheDts) {
  EXPECT_EQ(stamp(StreamKind::kVideo, {0, 0}), (Stamp{0, 0}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {100, 60}), (Stamp{60, 60}));
  EXPECT_EQ(repairs(TimestampRepair::kBackward), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineTest, AFirstTimestampBeyondAllClocksStillStartsAtZero) {
  EXPECT_EQ(video(kMax - 1), 0);
  EXPECT_EQ(video(kMax), 40);
  EXPECT_EQ(repairs(TimestampRepair::kMissing), 2u);
  EXPECT_EQ(video(7'000), 80);  // the first that can be believed
  EXPECT_EQ(video(7'040), 120);
  EXPECT_EQ(all_repairs(), 2u);
}

TEST_F(TimelineTest, AnUnbelievableDurationIsUnknown) {
  const PacketPtr packet = make_packet();
  for (const std::int64_t duration : {kMax, -kMax, std::int64_t{-1}, std::int64_t{3'600'001}}) {
    packet->dts = packet->pts = 0;
    packet->duration = duration;
    timeline.stamp(StreamKind::kVideo, *packet, {});
    EXPECT_EQ(packet->duration, 0) << duration;
  }
}

TEST_F(TimelineTest, HostileFrameTimesStillIncrease) {
  video(0);
  std::int64_t last = -1;
  for (const std::int64_t pts : {std::int64_t{0}, kMax, -kMax, kNone, kMax / 2, kMax, kMax}) {
    const std::int64_t out = timeline.stamp_frame(pts, kMax).value();
    EXPECT_GT(out, last);
    last = out;
  }
}

struct Hostility {
  AVRational time_base;
  AVRational rate;
  int wrap_bits;
  int reorder_delay;
};

// UBSan would find overflows here.
class HostileTimelineTest : public TimelineTest, public ::testing::WithParamInterface<Hostility> {};

TEST_P(HostileTimelineTest, WhateverComesTheLineGoesForwardsAndRepairsAreCounted) {
  const Hostility& h = GetParam();
  const std::vector<std::int64_t> evil{0,        40,        kNone,     kMax,  -kMax,   kMax - 1,
                                       kMax / 2, -kMax / 2, kMax / 3,  1,     -1,      90'000,
                                       kMax,     kMax / 4,  -kMax / 4, kNone, 1 << 30, 3};
  const std::vector<std::int64_t> durations{0, 40, kMax, -kMax, kMax / 2, -1, kNone};
  std::int64_t last[2] = {-kMax, -kMax};
  std::size_t turn = 0;
  for (int segment = 0; segment < 3; ++segment) {
    timeline.begin_segment(segment == 1 ? std::optional(microseconds(kMax)) : std::nullopt);
    timeline.set_stream(StreamKind::kVideo, {h.time_base, h.rate, h.wrap_bits, h.reorder_delay});
    timeline.set_stream(StreamKind::kAudio, {{1, 8000}, {0, 1}, h.wrap_bits, 0});
    for (const std::int64_t dts : evil) {
      for (const std::int64_t pts : evil) {
        const auto kind = turn % 3 == 2 ? StreamKind::kAudio : StreamKind::kVideo;
        const Stamp out = stamp(kind, {dts, pts}, durations[turn++ % durations.size()]);
        std::int64_t& before = last[static_cast<std::size_t>(kind)];
        ASSERT_GT(out.dts, before) << dts << ' ' << pts;
        ASSERT_LT(out.dts, kMax / 2) << dts << ' ' << pts;
        ASSERT_TRUE(out.pts == kNone || out.pts >= out.dts) << dts << ' ' << pts;
        before = out.dts;
      }
    }
  }
  EXPECT_GT(repairs(TimestampRepair::kMissing), 0u);
  EXPECT_GT(repairs(TimestampRepair::kJump), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Clocks, HostileTimelineTest,
    ::testing::Values(Hostility{{1, 1000}, {25, 1}, 64, 0}, Hostility{{1, 1}, {25, 1}, 64, 0},
                      Hostility{{1, 1}, {1, 2'000'000'000}, 33, 16},
                      Hostility{{1, 1'000'000'000}, {1, 2'000'000'000}, 64, 16},
                      Hostility{{1, 90'000}, {30'000, 1001}, 33, 2},
                      Hostility{{1, 90'000}, {0, 1}, 62, 16},
                      Hostility{{1001, 30'000}, {2'000'000'000, 1}, 32, 1},
                      Hostility{{2'000'000'000, 1}, {1, 1}, 64, 2}));

}  // namespace
}  // namespace framelane
