#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <thread>

#include "tests/pipeline/encode/held_encoder.hpp"
#include "tests/pipeline/feed/feed_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

/// A camera whose sound is transcoded beside the picture.
class SoundTest : public FeedTest {
 protected:
  SoundTest() {
    use_camera_with_sound();
    add_encode("main", "libx264", {{"preset", "ultrafast"}}).audio_codecs = {{"aac"}};
    add_output("record", "main", file("record.mkv"));
  }
  AudioCounts sound() const { return stats_->encode(0).audio.counts(); }
  std::uint64_t sound_dropped(AudioDrop reason) const { return sound().dropped[index_of(reason)]; }
};

TEST_F(SoundTest, AnEncoderThatFailsLeavesThePictureAloneAndComesBack) {
  start();
  ASSERT_TRUE(wait_sound_out(5));
  std::uint64_t frames = 0;
  {
    const FailingAudioEncoder failing;
    while (sound_dropped(AudioDrop::kEncoder) < 20 && !feed_->outcome()) {
      std::this_thread::sleep_for(1ms);
    }
    frames = stats_->ledger().encodes[0].out;
    ASSERT_TRUE(wait_out(frames + 5));
  }
  ASSERT_TRUE(wait_sound_out(sound().out + 5));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  expect_every_frame_accounted_for();
  const FeedStats::Ledger ledger = stats_->ledger();
  EXPECT_EQ(ledger.frames_in, ledger.encodes[0].out);
}

TEST_F(SoundTest, AFileThatIsConvertedOnceDoesNotLoseItsSoundInSilence) {
  options_.input.loop = false;
  options_.input.pace = InputOptions::Pace::kAsap;
  options_.once = true;
  const FailingAudioEncoder failing;
  const Feed::Outcome outcome = run();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kEncoder);
  EXPECT_EQ(outcome.reason.find("encode main: sound: aac does not take a frame"), 0u)
      << outcome.reason;
  expect_every_frame_accounted_for();
}

// If the encoder of the pictures were opened without the sound, the file would end where it begins.
TEST_F(SoundTest, TheFileBeginsWithBothAlsoIfThePictureIsFirst) {
  ffmpeg("-i '" + options_.input.url + "' -itsoffset 3 -i '" + options_.input.url +
         "' -map 0:v -map 1:a -c copy '" + file("late.mkv") + "'");
  options_.input.url = file("late.mkv");
  options_.input.loop = false;
  options_.input.pace = InputOptions::Pace::kAsap;
  options_.once = true;
  EXPECT_EQ(run().kind, Feed::Outcome::Kind::kEnded);
  EXPECT_GT(sound().out, 0u);
  std::size_t records = 0;
  for (const auto& entry : std::filesystem::directory_iterator(file(""))) {
    if (entry.path().filename().string().starts_with("record")) ++records;
  }
  EXPECT_EQ(records, 1u);
}

TEST_F(SoundTest, ADrainLosesNothing) {
  start();
  ASSERT_TRUE(wait_sound_out(5));
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  EXPECT_EQ(sound().in, sound().out);
  expect_every_frame_accounted_for();
}

TEST_F(SoundTest, WhatAStopLosesIsCounted) {
  start();
  ASSERT_TRUE(wait_sound_out(5));
  feed_->cancel(DropReason::kStop);
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  EXPECT_GT(sound_dropped(AudioDrop::kStop), 0u);
  EXPECT_EQ(sound().in, sound().out + sound_dropped(AudioDrop::kStop));
  expect_every_frame_accounted_for();
}

}  // namespace
}  // namespace framelane
