// Longer than 400 lines: what a whole feed does is tested with one fixture.
#include "pipeline/feed/feed.hpp"

extern "C" {
#include <libavutil/error.h>
}

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/frames/host_buffer.hpp"
#include "pipeline/source/input_options.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/encode/held_encoder.hpp"
#include "tests/pipeline/feed/feed_fixture.hpp"
#include "tests/pipeline/feed/raw_encoder.hpp"
#include "tests/pipeline/output/output_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

TEST_F(FeedTest, EveryFrameOfAFileComesOut) {
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  add_output("file", "live", file("out.mp4"));
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  EXPECT_EQ(stats_->ledger().frames_in, kClipFrames);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
  expect_every_frame_accounted_for();
  EXPECT_TRUE(std::filesystem::exists(file("out.mp4")));
}

TEST_F(FeedTest, SeveralEncodesShareOneInput) {
  add_encode("bypass", raw_encoder());
  add_encode("full", raw_encoder()).color.range = Range::kFull;
  add_encode("jpeg", "mjpeg");
  for (const char* name : {"bypass", "full", "jpeg"}) add_output(name, name, "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  for (const EncodeCounts& counts : stats_->ledger().encodes) EXPECT_EQ(counts.out, kClipFrames);
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, OutputsChangeWhileTheFeedGoesOn) {
  use_camera_with_sound();
  add_encode("live", "libx264", {{"preset", "ultrafast"}}).gop = 400ms;
  add_output("kept", "live", file("kept.ts"));
  add_output("changed", "live", file("old.ts"));
  add_output("gone", "live", file("gone.ts"));
  start();
  ASSERT_TRUE(wait_out(15));
  FeedOptions next = options_;
  next.outputs[1].url = file("new.mp4");  // its headers are not in band
  next.outputs[2].name = "added";
  next.outputs[2].url = file("added.ts");
  const auto kept = stats_->outputs()[0];
  ASSERT_TRUE(change(next));
  const std::uint64_t out = stats_->ledger().encodes[0].out;
  ASSERT_TRUE(wait_out(out + 30));
  // What was to be changed once more before it had begun.
  next.outputs[2].url = file("last.ts");
  ASSERT_TRUE(change(next));
  next.outputs[2].url = file("never.ts");
  ASSERT_TRUE(change(next));
  next.outputs[2].url = file("last.ts");
  ASSERT_TRUE(change(next));
  ASSERT_TRUE(wait_out(out + 60));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_every_frame_accounted_for();
  EXPECT_EQ(stats_->outputs()[0], kept);
  const std::uint64_t all = stats_->ledger().encodes[0].out;
  EXPECT_EQ(decoded_frames(file("kept.ts")), all);
  EXPECT_EQ(decoded_frames(file("old.ts")) + decoded_frames(file("new.mp4")), all);
  EXPECT_GE(decoded_frames(file("gone.ts")), 15u);
  std::size_t added = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "")) {
    const std::string name = entry.path().filename();
    const bool is_of_added =
        name.starts_with("added") || name.starts_with("last") || name.starts_with("never");
    if (is_of_added) added += decoded_frames(entry.path());
  }
  EXPECT_GE(added, all - out);
  EXPECT_TRUE(std::filesystem::exists(file("last.ts")));
  EXPECT_FALSE(change(next));  // it has ended
}

TEST_F(FeedTest, NoSoundIsLostWhereOneOutputReplacesAnother) {
  use_camera_with_sound();
  // Without a pause: what the encoder of sound holds then comes too late for any output.
  ffmpeg("-i '" + kClip + "' -f lavfi -i sine=duration=4.2 -c:v copy -c:a aac '" +
         options_.input.url + "'");
  EncodeOptions& encode = add_encode("live", "libx264", {{"preset", "ultrafast"}});
  encode.gop = 200ms;
  encode.audio_codecs.push_back({.name = "aac"});
  add_output("out", "live", file("0.mkv"));
  start();
  ASSERT_TRUE(wait_out(15));
  const auto lost = [&] {
    return stats_->outputs()[0]->packets_dropped[index_of(PacketDrop::kWaitKeyframe)].load();
  };
  const std::uint64_t before = lost();
  FeedOptions next = options_;
  for (int i = 1; i <= 5; ++i) {
    next.outputs[0].url = file(std::to_string(i) + ".mkv");
    ASSERT_TRUE(change(next));
    ASSERT_TRUE(wait_out(stats_->ledger().encodes[0].out + 12));
  }
  EXPECT_EQ(lost(), before);
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  EXPECT_TRUE(std::filesystem::exists(file("5.mkv")));
}

TEST_F(FeedTest, EncodesComeAndGoWhileTheOthersGoOn) {
  use_camera_with_sound();
  options_.on_full = OnFull::kBlock;  // a busy machine may be slower than the camera
  add_encode("kept", "libx264", {{"preset", "ultrafast"}}).copy_audio = true;
  add_encode("gone", "libx264", {{"preset", "ultrafast"}}).color.range = Range::kFull;
  add_copy("copy_gone");
  add_output("kept", "kept", file("kept.mkv"));
  add_output("gone", "gone", file("gone.mkv"));
  add_output("copy_gone", "copy_gone", file("copy_gone.mkv"));
  start();
  ASSERT_TRUE(wait_out(15));
  const FeedOptions first = options_;
  options_.encodes.resize(1);
  options_.outputs.resize(1);
  add_encode("added", "mpeg4");
  std::swap(options_.encodes[0], options_.encodes[1]);
  add_copy("copy_added");
  add_output("added", "added", file("added.mkv"));
  add_output("copy", "copy_added", file("copy_added.mkv"));
  const FeedOptions next = std::exchange(options_, first);
  const std::shared_ptr<FeedStats::EncodeLine> gone = stats_->line("gone");
  ASSERT_TRUE(change(next));
  const auto out_of_added = [&] { return stats_->ledger().encodes[0].out; };
  ASSERT_TRUE(comes_true([&] { return !feed_->outcome() && out_of_added() >= 30; }));
  // Those that were there come back, each as a new one, and those that came go.
  ASSERT_TRUE(change(first));
  ASSERT_TRUE(comes_true([&] {
    return !feed_->outcome() && stats_->ledger().encodes[1].out >= 20 &&
           stats_->outputs()[2]->bytes > 0;
  }));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_every_frame_accounted_for();
  EXPECT_EQ(gone->in_flight, 0);
  EXPECT_EQ(decoded_frames(file("gone.mkv")), gone->out);
  const FeedStats::Ledger ledger = stats_->ledger();
  EXPECT_EQ(ledger.encodes[0].out, ledger.frames_in);
  EXPECT_EQ(decoded_frames(file("kept.mkv")), ledger.frames_in);
  EXPECT_GE(decoded_frames(file("added.mkv")), 30U);
  EXPECT_EQ(decoded_frames(file("gone.2.mkv")), ledger.encodes[1].out);
  for (const char* name : {"copy_gone.mkv", "copy_added.mkv", "copy_gone.2.mkv"}) {
    EXPECT_TRUE(std::filesystem::exists(file(name))) << name;
  }
}

TEST_F(FeedTest, AnEncodeThatWantsOtherSoundOrCopiesIsAnotherOne) {
  use_camera_with_sound();
  options_.on_full = OnFull::kBlock;  // a busy machine may be slower than the camera
  add_encode("kept", "libx264", {{"preset", "ultrafast"}}).copy_audio = true;
  add_encode("main", "libx264", {{"preset", "ultrafast"}}).copy_audio = true;
  add_output("kept", "kept", file("kept.mkv"));
  add_output("main", "main", file("main.mkv"));
  start();
  ASSERT_TRUE(wait_out(15));
  FeedOptions next = options_;
  next.encodes[1].copy_audio = false;
  next.encodes[1].audio_codecs.push_back({.name = "aac"});
  ASSERT_TRUE(change(next));
  ASSERT_TRUE(comes_true(
      [&] { return feed_->outcome() || std::filesystem::exists(file("main.2.mkv.part")); }));
  next.encodes[1].copy_video = true;
  next.encodes[1].codecs.clear();
  ASSERT_TRUE(change(next));
  ASSERT_TRUE(comes_true(
      [&] { return feed_->outcome() || std::filesystem::exists(file("main.3.mkv.part")); }));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_every_frame_accounted_for();
  EXPECT_EQ(decoded_frames(file("kept.mkv")), stats_->ledger().frames_in);
  for (const char* name : {"main.mkv", "main.2.mkv", "main.3.mkv"}) {
    EXPECT_GT(decoded_frames(file(name)), 0U) << name;
  }
}

// The frames before it are encoded by the old encoder: none is lost, and no other encode notices.
TEST_F(FeedTest, AnEncodeThatChangesBeginsAnewAlone) {
  use_camera_with_sound();
  options_.on_full = OnFull::kBlock;  // a busy machine may be slower than the camera
  add_encode("kept", "libx264", {{"preset", "ultrafast"}});
  add_encode("main", "libx264", {{"preset", "ultrafast"}, {"bf", "2"}}).bitrate = 500'000;
  add_output("kept", "kept", file("kept.mkv"));
  add_output("main", "main", file("main.mkv"));
  start();
  ASSERT_TRUE(wait_out(15));
  FeedOptions next = options_;
  next.encodes[1].bitrate = 2'000'000;
  ASSERT_TRUE(change(next));
  ASSERT_TRUE(wait_out(stats_->ledger().encodes[0].out + 30));
  next.encodes[1].codecs = {{.name = "mpeg4"}};
  ASSERT_TRUE(change(next));
  ASSERT_TRUE(wait_out(stats_->ledger().encodes[0].out + 30));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_every_frame_accounted_for();
  const FeedStats::Ledger ledger = stats_->ledger();
  EXPECT_EQ(ledger.encodes[1].out, ledger.frames_in);
  EXPECT_EQ(decoded_frames(file("kept.mkv")), ledger.frames_in);
  std::size_t frames = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("main")) frames += decoded_frames(entry.path());
  }
  EXPECT_EQ(frames, ledger.frames_in);
}

TEST_F(FeedTest, EncoderThatHoldsMoreFramesThanTheRingDoesNotDeadlock) {
  options_.ring = 2;
  add_encode("jpeg", "mjpeg", {{"threads", "16"}});
  add_output("null", "jpeg", "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, FramesThatNeedNoConversionBypassTheStage) {
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  add_output("null", "live", "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
  EXPECT_EQ(conversions(), 0u);
}

TEST_F(FeedTest, OneEncodeThatNeedsAConversionSendsFramesThroughTheStage) {
  add_encode("same", "libx264", {{"preset", "ultrafast"}});
  EncodeOptions& full = add_encode("full", "libx264", {{"preset", "ultrafast"}});
  full.color.range = Range::kFull;
  for (const char* name : {"same", "full"}) add_output(name, name, "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  for (const EncodeCounts& counts : stats_->ledger().encodes) EXPECT_EQ(counts.out, kClipFrames);
  EXPECT_EQ(conversions(), kClipFrames);
}

TEST_F(FeedTest, CopyAloneDecodesNothing) {
  add_copy("main");
  add_output("file", "main", file("copy.mkv"));
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().frames_in, 0u);
  EXPECT_EQ(stats_->status().decoder, "");
  EXPECT_TRUE(std::filesystem::exists(file("copy.mkv")));
}

TEST_F(FeedTest, DrainEncodesWhatIsInHandAndCompletesTheFile) {
  options_.input.loop = true;
  add_encode("live", "libx264", {{"preset", "veryfast"}});
  add_output("file", "live", file("out.mp4"));
  start();
  ASSERT_TRUE(wait_out(50));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_every_frame_accounted_for();
  EXPECT_TRUE(std::filesystem::exists(file("out.mp4")));
  EXPECT_EQ(dropped(DropReason::kStop), 0u);
}

TEST_F(FeedTest, CancelDropsWhatIsInHandWithItsReason) {
  options_.input.loop = true;
  add_encode("live", "libx264", {{"preset", "veryfast"}});
  add_output("null", "live", "null:");
  start();
  ASSERT_TRUE(wait_out(50));
  feed_->cancel(DropReason::kReload);
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_every_frame_accounted_for();
  EXPECT_GT(dropped(DropReason::kReload), 0u);
}

TEST_F(FeedTest, LiveFeedDropsFromAFullRingAndCountsIt) {
  options_.input.loop = true;
  options_.on_full = OnFull::kDrop;
  options_.ring = 1;
  add_encode("slow", "libx264", {{"preset", "veryslow"}, {"tune", "zerolatency"}});
  add_output("null", "slow", "null:");
  start();
  ASSERT_TRUE(wait_out(1));
  while (dropped(DropReason::kRingFull) == 0) std::this_thread::yield();
  feed_->cancel(DropReason::kStop);
  wait();
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, EndlessSourceEndsAfterItsDuration) {
  options_.input.loop = true;
  options_.input.duration = 6s;
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  add_output("null", "live", "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, 60u);
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, SourceThatCannotBeOpenedFailsAtOnceWithOnce) {
  options_.input.url = file("missing.mp4");
  add_encode("live", "libx264");
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kSource);
  EXPECT_NE(outcome.reason.find("missing.mp4"), std::string::npos) << outcome.reason;
}

TEST_F(FeedTest, SourceThatCannotBeOpenedIsTriedAgain) {
  options_.once = false;
  options_.input.url = file("late.mp4");
  options_.input.reconnect = {10ms, 20ms};
  add_encode("live", "libx264", {{"preset", "ultrafast"}});
  start();
  while (stats_->reconnects[index_of(IoFault::kIo)] == 0) std::this_thread::yield();
  std::filesystem::copy(kClip, file("late.part"));
  std::filesystem::rename(file("late.part"), file("late.mp4"));
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->ledger().encodes[0].out, kClipFrames);
}

TEST_F(FeedTest, RejectedEncoderOptionEndsTheFeedAndDropsItsFrame) {
  add_encode("live", "libx264", {{"presett", "fast"}});
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.fault, FeedFault::kConfiguration);
  EXPECT_NE(outcome.reason.find("presett"), std::string::npos);
  EXPECT_EQ(dropped(DropReason::kFeedFailed), 1u);
  expect_every_frame_accounted_for();
}

// H.263 knows five sizes, and the clip has another one.
TEST_F(FeedTest, AnEncodeThatCannotWorkIsDownAlone) {
  options_.once = false;
  add_encode("low", "h263");
  add_encode("full", raw_encoder()).color.range = Range::kFull;
  add_encode("bypass", raw_encoder());
  add_output("full", "full", "null:");
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(dropped(DropReason::kEncoder, 0), kClipFrames);
  EXPECT_NE(stats_->encode(0).reason().find("h263 does not open"), std::string::npos);
  for (const std::size_t encode : {1, 2}) {
    EXPECT_EQ(stats_->ledger().encodes[encode].out, kClipFrames);
    EXPECT_EQ(stats_->encode(encode).reason(), "");
  }
  EXPECT_EQ(conversions(), kClipFrames);
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, WhatIsCopiedGoesOnWhenNothingCanBeEncoded) {
  options_.once = false;
  add_copy("copy");
  add_encode("low", "h263");
  add_output("copy", "copy", file("out.mp4"));
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(dropped(DropReason::kEncoder, 1), kClipFrames);
  EXPECT_TRUE(std::filesystem::exists(file("out.mp4")));
  EXPECT_EQ(conversions(), 0u);
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, AFeedOfWhichNoEncodeCanWorkFails) {
  options_.once = false;
  add_encode("low", "h263");
  add_encode("lower", "h261");
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.fault, FeedFault::kConfiguration);
  EXPECT_NE(outcome.reason.find("encode low: h263 does not open"), std::string::npos);
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, WhatRunsOnceDoesNotGoWithoutAnEncode) {
  add_encode("good", raw_encoder());
  add_encode("low", "h263");
  EXPECT_EQ(run().fault, FeedFault::kConfiguration);
  expect_every_frame_accounted_for();
}

// The file can be opened, but none of its frames can be decoded.
TEST_F(FeedTest, SourceWithoutAFrameFailsAndSaysSo) {
  Bytes bytes = read_file(kClip);
  const std::string tag = "mdat";
  const auto media = std::search(bytes.begin(), bytes.end(), tag.begin(), tag.end());
  ASSERT_NE(media, bytes.end());
  std::fill(media + 4, bytes.end(), std::uint8_t{0});
  options_.input.url = file("zeros.mp4");
  write_file(options_.input.url, bytes);
  add_encode("live", "libx264");
  add_output("file", "live", file("out.mp4"));
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kSource);
  EXPECT_NE(outcome.reason.find("without one frame"), std::string::npos) << outcome.reason;
  EXPECT_GT(stats_->decode_faults[index_of(DecodeFault::kCorrupt)], 0u);
  EXPECT_FALSE(std::filesystem::exists(file("out.mp4")));
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, RawFileShorterThanOneFrameFailsAndSaysSo) {
  write_file(file("short.raw"), Bytes(100));
  options_.once = false;  // a file's end is final: there is nothing to try again
  options_.input.url = file("short.raw");
  options_.input.format = "rawvideo";
  options_.input.raw = RawVideoOptions{.pixel_format = "bgra", .width = 64, .height = 48};
  add_encode("live", "libx264");
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.fault, FeedFault::kSource);
  EXPECT_NE(outcome.reason.find("without one frame"), std::string::npos) << outcome.reason;
  EXPECT_EQ(stats_->decode_faults[index_of(DecodeFault::kTruncated)], 1u);
}

// The encoder does not take the second size. That ends the feed, and with it the frames in hand.
TEST_F(FeedTest, FramesInHandWhenTheSourceFailsTheFeedAreCountedSo) {
  for (const auto& [name, size] : {std::pair{"a.ts", "352:288"}, std::pair{"b.ts", "320:240"}}) {
    ffmpeg("-i " + kClip + " -vf scale=" + size + " -frames:v 20 -c:v libx264 -bf 0 '" +
           file(name) + "'");
  }
  Bytes both = read_file(file("a.ts"));
  const Bytes rest = read_file(file("b.ts"));
  both.insert(both.end(), rest.begin(), rest.end());
  write_file(file("both.ts"), both);
  options_.input.url = file("both.ts");
  add_encode("narrow", "h261");
  add_encode("any", "libx264", {{"preset", "ultrafast"}, {"rc-lookahead", "40"}});
  for (const char* name : {"narrow", "any"}) add_output(name, name, "null:");
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kConfiguration) << outcome.reason;
  EXPECT_GE(dropped(DropReason::kFeedFailed, 0), 1u);
  EXPECT_GE(dropped(DropReason::kFeedFailed, 1), 1u);
  for (const EncodeCounts& counts : stats_->ledger().encodes) {
    EXPECT_EQ(counts.in, counts.out + counts.dropped[index_of(DropReason::kFeedFailed)]);
  }
  expect_every_frame_accounted_for();
}

// A GPU may hold up whoever unregisters a frame's memory, and whoever destroys a feed must not
// wait.
TEST_F(FeedTest, ARunWhoseEncoderFailsForGoodHasFreedItsFramesWhenItsThreadsEnd) {
  const FailingEncoder encoder;
  add_encode("live", "libx264");
  add_output("null", "live", "null:");
  const std::size_t before = host_memory_bytes();
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.fault, FeedFault::kEncoder);
  EXPECT_NE(outcome.reason.find("3 times in close succession"), std::string::npos)
      << outcome.reason;
  EXPECT_EQ(host_memory_bytes(), before);
  expect_every_frame_accounted_for();
}

TEST_F(FeedTest, AnEncoderThatGetsNoMemorySaysThatOurLimitMayBeTheCause) {
  const FailingEncoder encoder(AVERROR(ENOMEM));
  add_encode("live", "libx264");
  add_output("null", "live", "null:");
  const Feed::Outcome outcome = run();
  EXPECT_NE(outcome.reason.find("MemoryMax="), std::string::npos) << outcome.reason;
  EXPECT_NE(outcome.reason.find("input.limits.pixels"), std::string::npos) << outcome.reason;
}

TEST_F(FeedTest, DestroyingARunningFeedEndsIt) {
  options_.input.loop = true;
  add_encode("live", "libx264", {{"preset", "veryfast"}});
  add_output("null", "live", "null:");
  start();
  ASSERT_TRUE(wait_out(10));
  const std::uint64_t abandoned = threads_abandoned();
  feed_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned);
  EXPECT_EQ(stats_->abandoned_runs, 0);
  expect_every_frame_accounted_for();
}

}  // namespace
}  // namespace framelane
