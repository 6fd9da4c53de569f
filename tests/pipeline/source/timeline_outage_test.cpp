// Not built for ThreadSanitizer: what it tests has one thread.
// A live source that is lost and comes back.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "tests/pipeline/source/timeline_fixture.hpp"

namespace framelane {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class TimelineOutageTest : public testing::TimelineFixture {
 protected:
  static constexpr Timeline::StreamClock kLive{
      .time_base = kMilliseconds, .frame_rate = {25, 1}, .live = true};

  void begin_live(std::optional<microseconds> delay = {}) {
    timeline.begin_segment({}, delay);
    timeline.set_stream(StreamKind::kVideo, kLive);
    timeline.set_stream(StreamKind::kAudio,
                        {.time_base = kMilliseconds, .frame_rate = {0, 1}, .live = true});
  }
  /// A picture arrives.
  std::int64_t picture(std::int64_t at, std::int64_t time) {
    arrival = milliseconds(at);
    return video(time);
  }
  bool is_new(std::int64_t at, std::int64_t time, StreamKind kind = StreamKind::kVideo) {
    const PacketPtr packet = make_packet();
    packet->pts = packet->dts = time;
    packet->duration = 40;
    return timeline.stamp(kind, *packet, Timeline::Clock::time_point(milliseconds(at)));
  }
  static Timeline::Clock::time_point moment(std::int64_t ms) {
    return Timeline::Clock::time_point(milliseconds(ms));
  }
};

TEST_F(TimelineOutageTest, StaysAGapOnTheLine) {
  begin_live();
  EXPECT_EQ(picture(1000, 70'000), 0);
  EXPECT_EQ(picture(1040, 70'040), 40);
  begin_live();  // its clock begins anew
  EXPECT_EQ(picture(9000, 500), 8000);
  EXPECT_EQ(picture(9040, 540), 8040);
  EXPECT_EQ(all_repairs(), 0u);
  EXPECT_EQ(line_clock.taken_at(milliseconds(8040)), moment(9040));
}

TEST_F(TimelineOutageTest, TheSoundKeepsItsPlaceBesideThePicture) {
  begin_live();
  picture(1000, 70'000);
  audio(70'010);
  begin_live(milliseconds(9000 - 500));
  arrival = milliseconds(9000);
  EXPECT_EQ(audio(490), 7990);
  EXPECT_EQ(picture(9000, 500), 8000);
}

TEST_F(TimelineOutageTest, ABurstAtTheBeginningDoesNotMakeItsPicturesLate) {
  begin_live(milliseconds(1000 - 72'000));  // known of the burst's last picture
  EXPECT_EQ(picture(1000, 70'000), 0);
  EXPECT_EQ(picture(1000, 72'000), 2000);
  EXPECT_EQ(line_clock.taken_at(milliseconds(0)), moment(-1000));
  begin_live(milliseconds(9000 - 1500));
  EXPECT_EQ(picture(9000, 0), 8500);  // taken at 7500
  EXPECT_EQ(picture(9000, 1500), 10'000);
  EXPECT_EQ(line_clock.taken_at(milliseconds(8500)), moment(7500));
}

TEST_F(TimelineOutageTest, PicturesThatAreSentAgainAreNotDeliveredAgain) {
  begin_live();
  for (std::int64_t time = 0; time <= 2000; time += 40) picture(5000 + time, time);
  timeline.stamp_frame(2000, 40);
  begin_live(milliseconds(7500 - 3000));  // it had kept the last 3 s
  for (std::int64_t time = 0; time < 2400; time += 40) {
    EXPECT_FALSE(is_new(7500, time)) << time;
    EXPECT_FALSE(timeline.stamp_frame(time - 500, 40)) << time;
  }
  EXPECT_FALSE(is_new(7500, 2510));  // at 2010: the last one, a little later
  EXPECT_EQ(picture(7500, 2540), 2040);
  EXPECT_EQ(timeline.stamp_frame(2040, 40), 2040);
  EXPECT_EQ(picture(7540, 3040), 2540);
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineOutageTest, SoundThatIsSentAgainIsNotDeliveredAgain) {
  begin_live();
  for (std::int64_t time = 0; time <= 2000; time += 40) {
    picture(5000 + time, time);
    audio(time);
  }
  begin_live(milliseconds(7500 - 3000));
  EXPECT_FALSE(is_new(7500, 0));
  EXPECT_FALSE(is_new(7500, 0, StreamKind::kAudio));
  EXPECT_TRUE(is_new(7500, 2560));
  EXPECT_TRUE(is_new(7500, 2560, StreamKind::kAudio));
  EXPECT_EQ(all_repairs(), 0u);
}

// The time at which a picture was taken is never quite exact.
TEST_F(TimelineOutageTest, PicturesThatSeemALittleTooEarlyAreDelivered) {
  begin_live();
  picture(5000, 0);
  EXPECT_EQ(picture(5040, 40), 40);
  begin_live(milliseconds(5010 - 100));
  EXPECT_EQ(picture(5060, 100), 41);
  EXPECT_EQ(picture(5100, 140), 50);
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineOutageTest, AClaimToRepeatMoreThanAnyCameraKeepsIsNotBelieved) {
  begin_live();
  for (std::int64_t time = 0; time <= 60'000; time += 1000) picture(time, time);
  begin_live(milliseconds(-3600'000));
  EXPECT_EQ(picture(61'000, 61'000), 60'040);
  EXPECT_TRUE(is_new(61'040, 61'040));
}

// How late the first pictures of each segment came is not known; others come sooner.
TEST_F(TimelineOutageTest, ErrorsOfManyOutagesDoNotAddUp) {
  std::int64_t now = 1000;
  std::int64_t arrived = 0;
  for (std::int64_t outage = 0; outage <= 30; ++outage) {
    const std::int64_t booted = now - outage * 211 % 1000;  // 0 of the camera's clock
    const std::int64_t late = outage * 37 % 81;
    begin_live(milliseconds(booted + late));
    for (std::int64_t i = 0; i < 50; ++i, now += 40) {
      const std::int64_t held_up = i == 0 ? late : (outage * 31 + i * 17) % 81;
      arrived = std::max(arrived, now + held_up);
      const auto taken = line_clock.taken_at(milliseconds(picture(arrived, now - booted)));
      ASSERT_TRUE(taken);
      const auto error = std::chrono::duration_cast<milliseconds>(*taken - moment(now));
      EXPECT_LE(std::abs(error.count()), 100) << "picture " << i << " after outage " << outage;
    }
    now += outage * 701 % 3000;
  }
  EXPECT_EQ(all_repairs(), 0u);
}

TEST_F(TimelineOutageTest, AFileThatBeginsAgainGoesOnWithoutAGap) {
  picture(1000, 0);
  EXPECT_FALSE(line_clock.zero_us());
  begin(kVideo, microseconds(0));
  EXPECT_EQ(picture(9000, 0), 40);
}

/// A camera whose outages split recordings.
class TimelineSplitTest : public TimelineOutageTest {
 protected:
  void connect() {
    line.begin_segment();
    line.set_stream(StreamKind::kVideo, kLive);
  }
  void come(std::int64_t at, std::int64_t pts) {
    const PacketPtr packet = make_packet();
    packet->pts = packet->dts = pts;
    line.stamp(StreamKind::kVideo, *packet, moment(at));
  }
  void come(std::int64_t at) { come(at, at); }

  LineClock patient{std::chrono::seconds(5)};
  Timeline line{stats, patient};
};

TEST_F(TimelineSplitTest, ASourceIsGoneWhenItIsSilentForLongerThanItUsuallyIs) {
  EXPECT_FALSE(patient.gone_at());
  connect();
  come(1000);
  EXPECT_EQ(patient.gone_at(), moment(6000));
  come(1040);
  EXPECT_EQ(patient.gone_at(), moment(6080));
  EXPECT_TRUE(patient.splits(milliseconds(5100)));
  come(61'040);  // an outage, or a piece that was late
  EXPECT_EQ(patient.gone_at(), moment(76'040));
  EXPECT_TRUE(patient.splits(milliseconds(60'000)));
  come(121'040);  // a picture every minute
  EXPECT_EQ(patient.gone_at(), moment(186'040));
  EXPECT_FALSE(patient.splits(milliseconds(60'000)));
  connect();
  come(600'000);  // an outage is no pause that is usual
  EXPECT_EQ(patient.gone_at(), moment(665'000));
}

TEST_F(TimelineSplitTest, ASourceThatSendsInPiecesIsGoneBetweenTheFirstTwoAtMost) {
  connect();
  const auto receive_piece = [&](std::int64_t at) {
    for (int i = 0; i < 60; ++i) come(at + i, at + i * std::int64_t{100});
  };
  receive_piece(0);
  EXPECT_EQ(patient.gone_at(), moment(5060));
  for (std::int64_t at = 6000; at <= 60'000; at += 6000) {
    receive_piece(at);
    EXPECT_GT(patient.gone_at(), moment(at + 6000));
  }
}

TEST_F(TimelineSplitTest, AnOutageDelaysTheNextOneForAShortTimeOnly) {
  connect();
  come(0);
  come(3'600'000);
  for (int i = 1; i <= 600; ++i) come(3'600'000 + i * std::int64_t{40});
  EXPECT_EQ(patient.gone_at(), moment(3'624'000 + 5040));
}

}  // namespace
}  // namespace framelane
