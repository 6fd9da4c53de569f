#include "pipeline/output/output.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ContainerCase {
  const char* ending;
  const char* video;
  const char* audio;
};

class OutputContainerTest : public ::testing::TestWithParam<ContainerCase> {
 protected:
  const TempFolder folder_;
  const std::string path_ = folder_ / (std::string("out.") + GetParam().ending);
};

TEST_P(OutputContainerTest, HoldsEveryFrame) {
  TestOutput(output_to(path_)).write(encode_clip({.video = GetParam().video}));
  EXPECT_EQ(decoded_frames(path_), 50u);
}

TEST_P(OutputContainerTest, IsCompleteUnderItsNameAlone) {
  TestOutput(output_to(path_)).write(encode_clip({.video = GetParam().video}));
  EXPECT_THAT(names_in(folder_ / ""), ElementsAre(std::string("out.") + GetParam().ending));
}

TEST_P(OutputContainerTest, HoldsAudioInStep) {
  TestOutput(output_to(path_))
      .write(encode_clip({.video = GetParam().video, .audio = GetParam().audio, .start = 1000}));
  const double video = std::stod(probe_text(path_, "v:0", "stream=start_time"));
  const double audio = std::stod(probe_text(path_, "a:0", "stream=start_time"));
  EXPECT_NEAR(audio, video, 0.05);
}

TEST_P(OutputContainerTest, BeginsNearZeroWhereverThePacketsDo) {
  TestOutput(output_to(path_)).write(encode_clip({.video = GetParam().video, .start = 100'000}));
  EXPECT_LT(std::stod(probe_text(path_, "v:0", "stream=start_time")), 1.5);  // MPEG-TS adds 1.4
}

INSTANTIATE_TEST_SUITE_P(Files, OutputContainerTest,
                         ::testing::Values(ContainerCase{"mp4", "libx264", "aac"},
                                           ContainerCase{"mov", "libx264", "pcm_alaw"},
                                           ContainerCase{"mkv", "libx264", "pcm_alaw"},
                                           ContainerCase{"ts", "libx264", "mp2"},
                                           ContainerCase{"avi", "mjpeg", "mp2"}),
                         [](const auto& test) { return std::string(test.param.ending); });

// An encoder with another output that wants its headers apart leaves them out of the packets.
class OutputHeadersTest : public ::testing::TestWithParam<ContainerCase> {};

TEST_P(OutputHeadersTest, AreInTheStreamWhereTheContainerHasNoPlaceForThem) {
  const TempFolder folder;
  const std::string path = folder / (std::string("out.") + GetParam().ending);
  TestOutput(output_to(path)).write(encode_clip({.video = GetParam().video}));
  EXPECT_EQ(decoded_frames(path), 50u);
}

INSTANTIATE_TEST_SUITE_P(
    Files, OutputHeadersTest,
    ::testing::Values(ContainerCase{"ts", "mpeg4", ""}, ContainerCase{"m4v", "mpeg4", ""},
                      ContainerCase{"ts", "libx264", ""}, ContainerCase{"h264", "libx264", ""},
                      ContainerCase{"ts", "libx265", ""}, ContainerCase{"hevc", "libx265", ""}),
    [](const auto& test) { return std::string(test.param.video) + "_in_" + test.param.ending; });

TEST(OutputTest, ReorderedFramesKeepTheirOrder) {
  const TempFolder folder;
  TestOutput(output_to(folder / "out.mp4")).write(encode_clip({.b_frames = 2}));
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 50u);
}

Bytes decoded_pixels(const std::string& path) {
  return ffmpeg("-i '" + path + "' -map 0:v -fps_mode passthrough -f rawvideo -pix_fmt yuv420p -");
}

TEST(OutputTest, ACopyOfARealClipDecodesToTheSamePictures) {
  const TempFolder folder;
  const Bytes expected = decoded_pixels(clip("street_h264.mp4"));
  const Clip source = demux_clip(clip("street_h264.mp4"));
  for (const char* name : {"out.mp4", "out.mkv", "out.ts"}) {
    TestOutput(output_to(folder / name)).write(source);
    EXPECT_TRUE(decoded_pixels(folder / name) == expected) << name;
  }
}

TEST(OutputTest, RawVideoIsThePixelsAlone) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.raw");
  options.format = "rawvideo";
  const Clip clip = encode_clip({.video = "rawvideo", .frames = 3});
  TestOutput(options).write(clip);
  Bytes expected;
  for (const ClipPacket& p : clip.packets) {
    expected.insert(expected.end(), p.packet->data, p.packet->data + p.packet->size);
  }
  EXPECT_EQ(read_file(folder / "out.raw"), expected);
}

TEST(OutputTest, NullCountsTheBytesItDiscards) {
  const Clip clip = encode_clip({});
  std::uint64_t bytes = 0;
  for (const ClipPacket& p : clip.packets) bytes += static_cast<std::uint64_t>(p.packet->size);
  TestOutput output(output_to("null:"));
  output.write(clip);
  EXPECT_EQ(output.stats.bytes, bytes);
}

TEST(OutputTest, BytesAreThoseOfTheFile) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  output.write(encode_clip({}));
  EXPECT_EQ(output.stats.bytes, std::filesystem::file_size(folder / "out.mp4"));
}

TEST(OutputTest, PacketsBeforeTheFirstKeyframeAreCounted) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  const Clip clip = encode_clip({});
  output.start();
  output.push(clip, 3);
  output.finish();
  EXPECT_EQ(output.dropped(PacketDrop::kWaitKeyframe), 7u);
  EXPECT_EQ(output.stats.dependents_dropped, 0u);
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 40u);
}

TEST(OutputTest, ANewFormatGoesIntoANewFile) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  output.start();
  output.push(encode_clip({}));
  output.push(encode_clip({.width = 96, .start = 50}));
  output.finish();
  EXPECT_EQ(probe_text(folder / "out.mp4", "v:0", "stream=width"), "64");
  EXPECT_EQ(probe_text(folder / "out.2.mp4", "v:0", "stream=width"), "96");
}

TEST(OutputTest, TheSameFormatOfAnotherSourceGoesOnInTheFile) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  const Clip clip = encode_clip({});
  output.start();
  output.push(clip);
  output.push(later(clip, 50));
  output.finish();
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 100u);
}

TEST(OutputTest, ASourceThatComesBackInsideAGroupIsLeftOutUpToTheKeyframe) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  const Clip clip = encode_clip({});
  output.start();
  output.push(clip);
  output.push(later(clip, 50), 4);
  output.finish();
  EXPECT_EQ(output.dropped(PacketDrop::kWaitKeyframe), 6u);
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 90u);
}

TEST(OutputTest, APacketThatGoesBackInTimeIsCountedAndTheFileGoesOn) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  const Clip clip = encode_clip({});
  output.start();
  output.push(clip, 0, 40);
  output.push(clip, 39, 1);
  output.push(clip, 40);
  output.finish();
  EXPECT_EQ(output.dropped(PacketDrop::kWriteFailed), 1u);
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 50u);
}

TEST(OutputTest, AudioThatNoPlayerFindsIsLeftOut) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  output.write(encode_clip({.audio = "pcm_alaw"}));
  EXPECT_EQ(probe_text(folder / "out.ts", "a", "stream=codec_name"), "");
  EXPECT_EQ(output.dropped(), 0u);
}

TEST(OutputTest, AnOptionThatNothingConsumesIsNamed) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.mp4");
  options.options.push_back({"hls_tiem", "2"});
  TestOutput output(options);
  try {
    output.write(encode_clip({}), true);
    FAIL() << "accepted";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    EXPECT_THAT(error.what(), HasSubstr("hls_tiem"));
  }
}

TEST(OutputTest, AConfigurationThatFailsLeavesNoFile) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.mp4");
  options.options.push_back({"hls_tiem", "2"});
  TestOutput output(options);
  EXPECT_THROW(output.write(encode_clip({}), true), FeedError);
  EXPECT_TRUE(names_in(folder / "").empty());
}

TEST(OutputTest, AnInheritedOptionMayGoUnused) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.mp4");
  options.options.push_back({"rtsp_transport", "tcp", true});
  TestOutput(options).write(encode_clip({}));
  EXPECT_EQ(decoded_frames(folder / "out.mp4"), 50u);
}

TEST(OutputTest, NoOptionSwitchesFragmentsOff) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.mp4");
  options.options.push_back({"movflags", "-frag_keyframe-empty_moov"});
  TestOutput(options).write(encode_clip({}));
  EXPECT_GE(occurrences(text_of(folder / "out.mp4"), "moof"), 3u);
}

TEST(OutputTest, AContainerThatCannotHoldTheVideoIsAConfigurationProblem) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  EXPECT_THROW(output.write(encode_clip({.video = "ffv1"}), true), FeedError);
}

TEST(OutputTest, AFormatThatTheContainerCannotHoldCostsItsOwnPacketsAlone) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.ts");
  options.reconnect = {.first = 1h, .max = 1h};  // the new format ends the wait, not the time
  TestOutput output(options);
  output.start();
  output.push(encode_clip({}));
  output.push(encode_clip({.video = "ffv1", .frames = 5, .start = 50}));
  EXPECT_TRUE(comes_true([&] { return output.stats.state().first == FeedState::kBackoff; }));
  EXPECT_THAT(output.stats.state().second, HasSubstr("cannot hold ffv1 video"));
  output.push(encode_clip({.start = 55}));
  output.finish();
  EXPECT_EQ(output.dropped(), 5u);
  EXPECT_EQ(output.stats.state().first, FeedState::kEnded);
  EXPECT_EQ(decoded_frames(folder / "out.ts"), 50u);
  EXPECT_EQ(decoded_frames(folder / "out.2.ts"), 50u);
}

TEST(OutputTest, TheReasonOfAnOutputThatEndsInTroubleStays) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  output.write(encode_clip({.video = "ffv1"}));
  EXPECT_EQ(output.stats.state().first, FeedState::kFailed);
  EXPECT_THAT(output.stats.state().second, HasSubstr("cannot hold ffv1 video"));
  EXPECT_EQ(output.dropped(), 50u);
}

TEST(OutputTest, AStopCompletesTheFileAtOnce) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.mp4"));
  output.start();
  output.push(encode_clip({}));
  ASSERT_TRUE(comes_true([&] { return output.stats.up.load(); }));
  output.stop.request_stop();
  EXPECT_TRUE(output.joined_within(1s));
  EXPECT_THAT(names_in(folder / ""), ElementsAre("out.mp4"));
}

TEST(OutputTest, EveryPacketOfAStoppedOutputIsWrittenOrCounted) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  const Clip clip = encode_clip({});
  output.start();
  output.push(clip, 0, 30);
  output.stop.request_stop();
  output.push(clip, 30);
  output.join();
  const std::size_t written =
      std::filesystem::exists(folder / "out.ts") ? decoded_frames(folder / "out.ts") : 0;
  EXPECT_EQ(written + output.dropped(PacketDrop::kStop), 50u);
}

TEST(OutputTest, MuxingTimeIsObservedPerPacket) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  output.write(encode_clip({}));
  EXPECT_EQ(output.feed.steps[index_of(StageStep::kMux)].snapshot().count, 50u);
}

TEST(OutputTest, WhatAnOutputSaysAfterItWasAbandonedIsIgnored) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  output.start();
  output.push(encode_clip({}));
  ASSERT_TRUE(comes_true([&] { return output.stats.up.load(); }));
  output.stats.begin_run();  // its successor's
  output.finish();
  EXPECT_EQ(output.stats.state().first, FeedState::kRunning);
}

TEST(OutputTest, AnOutputWhoseEncodeIsDownSaysWhy) {
  const TempFolder folder;
  OutputOptions options = output_to(folder / "out.ts");
  options.from = "main";
  TestOutput output(options);
  EncodeStats& encode = output.feed.encode(0);
  const auto shows = [&](FeedState state, const std::string& reason) {
    return comes_true([&] { return output.stats.state() == std::pair(state, reason); });
  };
  encode.set_reason("the crop is too large");
  output.start();
  EXPECT_TRUE(shows(FeedState::kConnecting, "waits for encode main: the crop is too large"));
  encode.set_reason({});
  output.push(encode_clip({}));
  EXPECT_TRUE(shows(FeedState::kRunning, ""));
  encode.set_reason("it has no memory");
  EXPECT_TRUE(shows(FeedState::kRunning, "waits for encode main: it has no memory"));
  EXPECT_FALSE(output.stats.up);
  encode.set_reason({});
  EXPECT_TRUE(shows(FeedState::kRunning, ""));
  EXPECT_TRUE(output.stats.up);
  output.finish();
}

TEST(OutputTest, TheStateFollowsTheOutput) {
  const TempFolder folder;
  TestOutput output(output_to(folder / "out.ts"));
  EXPECT_EQ(output.stats.state().first, FeedState::kConnecting);
  output.start();
  output.push(encode_clip({}));
  EXPECT_TRUE(comes_true([&] { return output.stats.state().first == FeedState::kRunning; }));
  output.finish();
  EXPECT_EQ(output.stats.state().first, FeedState::kEnded);
  EXPECT_FALSE(output.stats.up);
}

}  // namespace
}  // namespace framelane
