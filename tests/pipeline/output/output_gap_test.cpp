// Sources that are gone for a while, and when their pictures were taken.
#include <gmock/gmock.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "pipeline/base/utc_time.hpp"
#include "pipeline/output/picture_time.hpp"
#include "pipeline/packets/packet_fanout.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using std::chrono::microseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;

/// Pictures have come until now. 0 on the line was `age` ago.
void come(LineClock& line, microseconds age = 10s) {
  const auto zero = steady_clock::now() - age;
  line.set_zero(std::chrono::duration_cast<microseconds>(zero.time_since_epoch()).count());
  line.arrived(steady_clock::now(), 0us, 0us);
}

/// An output behind a fan-out, which keeps the current group of pictures.
struct FannedOut {
  explicit FannedOut(const std::string& url) : to(output_to(url)) { to.start(); }

  void publish(const Clip& clip, std::size_t first, std::size_t end) {
    come(to.line_clock);
    for (std::size_t i = first; i < end; ++i) {
      fanout.publish(*clip.packets[i].packet, clip.packets[i].stream, clip.format, {});
    }
  }
  /// Of the packets, `count` come before a gap that ends `file`, and the others after it.
  void write(const Clip& clip, std::size_t count, const std::string& file) {
    publish(clip, 0, count);
    ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(file); }));
    publish(clip, count, clip.packets.size());
    finish();
  }
  void finish() {
    fanout.finish();
    to.join();
  }

  TestOutput to;
  PacketFanout fanout{{&to.output.inlet()}};
};

/// The packets from `first` on come four seconds later.
void delay(Clip& clip, std::size_t first) {
  for (std::size_t i = first; i < clip.packets.size(); ++i) {
    const bool video = clip.packets[i].stream == StreamKind::kVideo;
    const AVRational base = (video ? clip.format->video : *clip.format->audio).time_base;
    AVPacket& packet = *clip.packets[i].packet;
    packet.pts += 4 * base.den / base.num;
    packet.dts += 4 * base.den / base.num;
  }
}

/// Comes at least two seconds after it.
Clip after(const Clip& clip) { return later(clip, 100); }

std::string last_time(const std::string& path) {
  const Bytes bytes =
      output_of("ffprobe -v error -select_streams v -show_entries packet=pts_time -of csv=p=0 '" +
                path + "' | tail -n 1");
  return {bytes.begin(), bytes.begin() + 8};
}

TEST(OutputGapTest, ARecordingEndsWhileItsSourceIsGone) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  output.start();
  come(output.line_clock);
  output.push(encode_clip({}));
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(folder / "out.mp4"); }));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mp4"));
  come(output.line_clock);
  output.push(after(encode_clip({})));
  output.finish();
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 50u);
  EXPECT_EQ(decoded_frames(folder / "out.2.mp4"), 50u);
  EXPECT_EQ(output.dropped(), 0u);
}

TEST(OutputGapTest, AGapThatNobodySawWhileItLastedSplitsTheRecordingToo) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  come(output.line_clock);
  output.start();
  const Clip clip = encode_clip({});
  output.push(clip);
  output.push(after(clip));
  output.finish();
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.2.ts", "out.ts"));
}

// The network stalls in the middle of a group, and then brings all of it: nothing is lost.
TEST(OutputGapTest, ARecordingLosesNoPictureAtAGapWithinAGroup) {
  const TempFolder folder;
  FannedOut output(folder / "out.mkv");
  Clip clip = encode_clip({.gop = 20});
  delay(clip, 30);
  output.write(clip, 30, folder / "out.mkv");
  // The gap is within the second file, and does not end that at its next keyframe.
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.2.mkv", "out.mkv"));
  EXPECT_EQ(decoded_frames(folder / "out.mkv"), 30u);
  EXPECT_EQ(decoded_frames(folder / "out.2.mkv"), 30u);  // 20 to 29 once more
  EXPECT_EQ(output.to.dropped(), 0u);
}

TEST(OutputGapTest, ARecordingLosesNoSoundAtAGapWithinAGroup) {
  const TempFolder folder;
  FannedOut output(folder / "out.mkv");
  Clip clip = encode_clip({.gop = 50, .audio = "pcm_alaw"});
  const std::size_t half = clip.packets.size() / 2;
  delay(clip, half);
  output.write(clip, half, folder / "out.mkv");
  EXPECT_EQ(decoded_frames(folder / "out.2.mkv"), 50u);
  EXPECT_EQ(output.to.dropped(), 0u);
}

TEST(OutputGapTest, AFileThatHoldsAGapEndsAtTheNextOne) {
  const TempFolder folder;
  FannedOut output(folder / "out.mkv");
  Clip clip = encode_clip({.gop = 20});
  delay(clip, 30);
  delay(clip, 35);  // that nobody sees while it lasts
  output.write(clip, 30, folder / "out.mkv");
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.2.mkv", "out.3.mkv", "out.mkv"));
  EXPECT_EQ(output.to.dropped(), 0u);
}

TEST(OutputGapTest, AfterAReconnectNothingOfBeforeTheGapComesAgain) {
  const TempFolder folder;
  FannedOut output(folder / "out.mkv");
  const Clip clip = encode_clip({.gop = 20});
  output.publish(clip, 0, 30);
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(folder / "out.mkv"); }));
  output.publish(after(clip), 30, 50);
  output.finish();
  EXPECT_EQ(decoded_frames(folder / "out.2.mkv"), 10u);
  EXPECT_EQ(output.to.dropped(PacketDrop::kWaitKeyframe), 10u);
}

TEST(OutputGapTest, WhatCannotBeWrittenAfterAGapIsCountedThoughNoKeyframeComes) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mkv"));
  const Clip clip = encode_clip({.gop = 20});
  output.start();
  come(output.line_clock);
  output.push(clip, 0, 30);
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(folder / "out.mkv"); }));
  come(output.line_clock);
  output.push(clip, 30, 5);  // nobody keeps groups
  output.finish();
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mkv"));
  EXPECT_EQ(output.dropped(PacketDrop::kWaitKeyframe), 5u);
}

// Its viewers have seen the group before the gap.
TEST(OutputGapTest, APlaylistGoesOnAtTheNextKeyframe) {
  const TempFolder folder;
  FannedOut output(folder / "live.m3u8");
  Clip clip = encode_clip({.gop = 20});
  delay(clip, 30);
  output.write(clip, 30, folder / "live.m3u8");
  EXPECT_EQ(occurrences(text_of(folder / "live.m3u8"), "#EXT-X-DISCONTINUITY\n"), 1u);
  EXPECT_EQ(output.to.dropped(PacketDrop::kWaitKeyframe), 10u);
}

TEST(OutputGapTest, AShorterGapStaysInTheFile) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mkv"));
  come(output.line_clock);
  output.start();
  const Clip clip = encode_clip({});
  output.push(clip);
  output.push(later(clip, 54));  // 160 ms
  output.finish();
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mkv"));
  EXPECT_EQ(last_time(folder / "out.mkv"), "4.120000");
}

TEST(OutputGapTest, AFileGoesOnAcrossTheGapsOfASourceThatDoesNotTellTime) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  output.start();
  const Clip clip = encode_clip({});
  output.push(clip);
  output.push(after(clip));
  output.finish();
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.ts"));
}

TEST(OutputGapTest, APlaylistGoesOnWithADiscontinuity) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "live.m3u8");
  options.options = {{"hls_time", "1"}, {"hls_flags", "program_date_time"}};
  TestOutput output(options);
  come(output.line_clock);
  output.start();
  const Clip clip = encode_clip({});
  output.push(clip);
  output.push(after(clip));
  output.finish();
  const std::string text = text_of(folder / "live.m3u8");
  EXPECT_EQ(occurrences(text, "#EXT-X-DISCONTINUITY\n"), 1u) << text;
}

TEST(OutputGapTest, AFileSaysWhenItsFirstPictureWasTaken) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "%s.mkv"));
  const auto taken = std::chrono::system_clock::now() - 1h;
  come(output.line_clock, 1h + 2s);
  output.write(later(encode_clip({.b_frames = 2}), 50));
  const std::string name = *names_in(folder / "").begin();
  const std::string says = probe_text(folder / name, "v:0", "format_tags=creation_time");
  const auto first = std::chrono::system_clock::from_time_t(std::stol(name));
  EXPECT_LT(std::chrono::abs(first - taken), 2s) << name;
  // To the millisecond.
  EXPECT_EQ(says.substr(0, 20), utc_time(first).substr(0, 20));
  EXPECT_EQ(probe_text(folder / name, "v:0", "stream=start_time"), "0.000000");
}

TEST(OutputGapTest, AWallClockThatIsSetChangesNoTimestampButWhatIsSaidOfIt) {
  LineClock line;
  come(line);
  const Clip clip = encode_clip({.frames = 1});
  const MediaPacket packet{.packet = PacketPtr(av_packet_clone(clip.packets[0].packet.get())),
                           .format = clip.format};
  ClockReading now = ClockReading::now();
  const auto before = taken_at(packet, line, now);
  EXPECT_LT(std::chrono::abs(now.wall - 10s - before), 100ms);
  now.wall += 1h;
  EXPECT_EQ(taken_at(packet, line, now) - before, 1h);
}

TEST(OutputGapTest, WhatTranscodeMakesOfAFileDoesNotSayWhen) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.mp4");
  options.existing = Existing::kRefuse;
  TestOutput(options).write(encode_clip({}), true);
  EXPECT_EQ(probe_text(folder / "out.mp4", "v:0", "format_tags=creation_time"), "");
}

TEST(OutputGapTest, EachFragmentOfMp4SaysWhenItWasTaken) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  come(output.line_clock);
  output.write(encode_clip({.gop = 25}));
  EXPECT_EQ(occurrences(text_of(folder / "out.mp4"), "prft"), 2u);
}

// The camera's clock is found to be 20 ms behind ours over 49 s.
TEST(OutputGapTest, AFileFollowsOurClock) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mkv"));
  output.line_clock.arrived(steady_clock::now(), 1min, 1min);
  output.line_clock.set_zero(0);
  output.start();
  const Clip clip = encode_clip({.rate = 1});
  output.push(clip, 0, 1);
  ASSERT_TRUE(comes_true([&] { return output.stats.up.load(); }));
  output.line_clock.set_zero(20'000);
  output.push(clip, 1);
  output.finish();
  EXPECT_EQ(last_time(folder / "out.mkv"), "49.02000");
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mkv"));
}

}  // namespace
}  // namespace framelane
