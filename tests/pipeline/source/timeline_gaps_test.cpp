// Not built for ThreadSanitizer: what it tests has one thread.
// Pictures that are far apart, and clocks that can be believed.
#include "tests/pipeline/source/timeline_fixture.hpp"

namespace framelane {
namespace {

class TimelineGapsTest : public testing::TimelineFixture {
 protected:
  static constexpr Timeline::StreamClock kTransportStream{
      .time_base = kMilliseconds, .frame_rate = {25, 1}, .gaps = Timeline::Gaps::kPlausible};
};

// As from a camera that sends a picture every ten seconds.
TEST_F(TimelineGapsTest, PicturesFarApartKeepTheTimesAtWhichTheyCome) {
  for (const std::int64_t time : {0, 10'000, 20'050, 29'950, 90'000}) {
    arrival = std::chrono::milliseconds(time + time % 7);
    EXPECT_EQ(video(70'000 + time), time);
  }
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineGapsTest, AClockThatIsSetIsAJumpBetweenPicturesFarApartToo) {
  Times times;
  for (const std::int64_t time : {0, 10'000, 900'000, 910'000, 920'000, 930'000}) {
    arrival += std::chrono::seconds(10);
    times.push_back(video(time));
  }
  EXPECT_EQ(times, (Times{0, 10'000, 20'000, 30'000, 40'000, 50'000}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineGapsTest, AFilesGapsAreBelieved) {
  begin({.time_base = kMilliseconds, .frame_rate = {25, 1}, .gaps = Timeline::Gaps::kAll});
  EXPECT_EQ(videos({0, 40, 60'000, 60'040, 3'000'000}), (Times{0, 40, 60'000, 60'040, 3'000'000}));
  EXPECT_EQ(all_repairs(), 0u);
  EXPECT_EQ(videos({0, 40}), (Times{3'000'040, 3'000'080}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
}

TEST_F(TimelineGapsTest, ATransportStreamsGapsAreBelievedUpToTenMinutes) {
  begin(kTransportStream);
  EXPECT_EQ(videos({0, 10'000, 20'000, 600'000, 600'040}),
            (Times{0, 10'000, 20'000, 600'000, 600'040}));
  EXPECT_EQ(all_repairs(), 0u);
  EXPECT_EQ(videos({1'300'000, 1'300'040, 1'300'080}), (Times{600'080, 600'120, 600'160}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
  EXPECT_EQ(videos({7'000, 7'040, 7'080}), (Times{600'200, 600'240, 600'280}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 2u);
}

TEST_F(TimelineGapsTest, ASingleFarPacketOfATransportStreamIsNoGap) {
  begin(kTransportStream);
  EXPECT_EQ(videos({0, 40, 80, 300'000, 160, 200}), (Times{0, 40, 80, 120, 160, 200}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineGapsTest, ATransportStreamsGapIsBelievedOnceThreePacketsAgree) {
  begin(kTransportStream);
  EXPECT_EQ(videos({0, 40, 60'000, 60'040, 60'080, 60'120}),
            (Times{0, 40, 80, 120, 60'080, 60'120}));
  EXPECT_EQ(all_repairs(), 1u);
  EXPECT_EQ(videos({80'000, 90'000, 100'000, 110'000}), (Times{60'160, 60'200, 100'000, 110'000}));
  EXPECT_EQ(repairs(TimestampRepair::kJump), 2u);
  EXPECT_EQ(all_repairs(), 2u);
}

TEST_F(TimelineGapsTest, ADamagedPtsOfATransportStreamIsNoGap) {
  begin(kTransportStream);
  EXPECT_EQ(stamp(StreamKind::kVideo, {0, 0}), (Stamp{0, 0}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {40, 300'040}), (Stamp{40, 40}));
  EXPECT_EQ(stamp(StreamKind::kVideo, {80, 80}), (Stamp{80, 80}));
  EXPECT_EQ(repairs(TimestampRepair::kMissing), 1u);
}

TEST_F(TimelineGapsTest, APictureThatJumpsWhileTheSoundGoesOnIsNoGap) {
  begin(kTransportStream);
  EXPECT_EQ(video(0), 0);
  EXPECT_EQ(audio(0), 0);
  EXPECT_EQ(video(300'000), 40);
  EXPECT_EQ(audio(40), 40);
  EXPECT_EQ(video(80), 80);
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
}

TEST_F(TimelineGapsTest, PicturesThatJumpForGoodWhileTheSoundGoesOnStayBesideIt) {
  begin(kTransportStream);
  EXPECT_EQ(video(0), 0);
  EXPECT_EQ(audio(0), 0);
  for (std::int64_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(video(300'000 + i * 40), i * 40);
    EXPECT_EQ(audio(i * 40), i * 40);
  }
  EXPECT_EQ(all_repairs(), 1u);
}

TEST_F(TimelineGapsTest, PicturesFarApartBesideSoundKeepTheirTimes) {
  begin(kTransportStream);
  EXPECT_EQ(video(0), 0);
  for (std::int64_t time = 0; time < 10'000; time += 40) EXPECT_EQ(audio(time), time);
  EXPECT_EQ(video(10'000), 10'000);
  EXPECT_EQ(all_repairs(), 0u);
}

// Where a recording was paused, the third packet shows that the first two were right.
TEST_F(TimelineGapsTest, AGapInBothStreamsIsBelievedOnceThePacketsBehindItAgree) {
  begin(kTransportStream);
  EXPECT_EQ(video(0), 0);
  EXPECT_EQ(audio(0), 0);
  EXPECT_EQ(videos({30'000, 30'040, 30'080, 30'120}), (Times{40, 80, 30'080, 30'120}));
  EXPECT_EQ(audio(30'000), 30'000);
  EXPECT_EQ(repairs(TimestampRepair::kJump), 1u);
}

TEST_F(TimelineGapsTest, ReadingsOfOurClockStayAsTheyAreFromOneSegmentToTheNext) {
  constexpr Timeline::StreamClock kOurs{
      .time_base = kMilliseconds, .frame_rate = {25, 1}, .ours = true};
  begin(kOurs);
  EXPECT_EQ(videos({500'000, 506'000, 512'000, 512'001}), (Times{0, 6000, 12'000, 12'001}));
  begin(kOurs);
  EXPECT_EQ(videos({572'000, 578'000}), (Times{72'000, 78'000}));
  EXPECT_EQ(all_repairs(), 0u);
}

}  // namespace
}  // namespace framelane
