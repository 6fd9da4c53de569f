// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/encode/audio_encode.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/encode/audio_encode_fixture.hpp"
#include "tests/pipeline/encode/held_encoder.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(AudioEncodeTest, SoundIsWhereItsTimestampsSay) {
  for (const char* encoder : {"pcm_s16le", "aac", "mp2"}) {
    use(encoder, sound(encoder == std::string("mp2") ? 16'000 : 8000));
    play(0.26, 5.7);
    finish();
    expect_in_step(5, 0.004);
    EXPECT_EQ(counts().in, counts().out) << encoder;
  }
}

TEST_F(AudioEncodeTest, LostPacketsBecomeSilence) {
  use("aac", sound(8000));
  play(0.26, 2.3);
  play(2.4, 4.3);
  play(4.32, 6.6);
  finish();
  expect_in_step(6, 0.004);
  EXPECT_EQ(repairs(AudioRepair::kSilence), 2u);
  EXPECT_EQ(counts().in, counts().out);
}

TEST_F(AudioEncodeTest, ALongPauseStaysAPause) {
  use("aac", sound(8000));
  play(0.26, 1.5);
  play(3601.5, 3602.5);
  finish();
  expect_in_step(2, 0.004);
  EXPECT_EQ(repairs(AudioRepair::kJump), 1u);
  EXPECT_LT(packets_, 25);
}

TEST_F(AudioEncodeTest, ALostPacketBecomesSilenceAlsoAfterSeveralPauses) {
  use("aac", sound(8000));
  play(0.26, 1.5, 0.04);
  play(3.5, 4.5, 0.04);
  play(6.5, 7.5, 0.04);
  play(9.5, 10.5, 0.04);
  play(10.54, 12.3, 0.04);
  finish();
  expect_in_step(6, 0.004);
  EXPECT_EQ(repairs(AudioRepair::kJump), 3u);
  EXPECT_EQ(repairs(AudioRepair::kSilence), 1u);
}

TEST_F(AudioEncodeTest, SoundThatIsThereAlreadyIsLeftOut) {
  use("pcm_s16le", sound(8000));
  play(0.26, 2.5);
  play(2.3, 4.5);
  finish();
  expect_in_step(4, 0.002);
  EXPECT_EQ(repairs(AudioRepair::kTrim), 1u);
  EXPECT_GE(dropped(AudioDrop::kOverlap), 9u);
  EXPECT_EQ(counts().in_flight, 0);
}

TEST_F(AudioEncodeTest, AnotherFormatOfTheSourceGoesOnInTheSameStream) {
  use("aac", sound(8000));
  const StreamFormat* format = audio_->format();
  play(0.26, 2.5);
  change_source(sound(48'000, 2));
  play(2.5, 4.5);
  finish();  // the source is lost, and comes back
  change_source(sound(16'000));
  play(4.5, 6.6);
  finish();
  EXPECT_EQ(audio_->format(), format);
  EXPECT_EQ(format->parameters->sample_rate, 8000);
  expect_in_step(6, 0.004);
  EXPECT_EQ(counts().in, counts().out);
}

TEST_F(AudioEncodeTest, ASourceWithoutSoundHasNoFormatAndItsSoundMayComeLater) {
  auto silent = std::make_shared<MediaFormat>();
  silent->video.parameters.reset(avcodec_parameters_alloc());
  use("aac", silent);
  EXPECT_EQ(audio_->format(), nullptr);
  change_source(sound(8000));
  EXPECT_NE(audio_->format(), nullptr);
  change_source(silent);
  EXPECT_EQ(audio_->format(), nullptr);
}

TEST_F(AudioEncodeTest, SoundWhoseFormatIsNotKnownYetIsTakenWhenItComes) {
  use("aac", sound(0, 1, AV_CODEC_ID_MP2));
  EXPECT_EQ(audio_->format(), nullptr);
  send_mp2(20);
  ASSERT_NE(audio_->format(), nullptr);
  EXPECT_EQ(audio_->format()->parameters->sample_rate, 16'000);
  finish();
  EXPECT_EQ(counts().in, 20u);
  EXPECT_EQ(counts().out, 20u);
}

TEST_F(AudioEncodeTest, DamageIsCountedAndBecomesSilence) {
  use("pcm_s16le", sound(8000));
  play(0.26, 2.5);
  const PacketPtr half_a_sample = make_packet();
  ASSERT_GE(av_new_packet(half_a_sample.get(), 1), 0);
  half_a_sample->pts = half_a_sample->dts = 225'000;
  send(*half_a_sample);
  play(2.6, 4.5);
  finish();
  expect_in_step(4, 0.002);
  EXPECT_EQ(dropped(AudioDrop::kDecode), 1u);
  EXPECT_EQ(counts().in, counts().out + 1);
}

TEST_F(AudioEncodeTest, SoundThatNothingDecodesIsDropped) {
  use("aac", sound(8000, 1, AV_CODEC_ID_PROBE));
  EXPECT_EQ(audio_->format(), nullptr);
  play(0, 0.1);
  EXPECT_EQ(dropped(AudioDrop::kDecode), 5u);
}

TEST_F(AudioEncodeTest, SoundThatNothingConvertsIsDropped) {
  const MediaFormatRef source = sound(8000, 4);
  AVChannelLayout& layout = source->audio->parameters->ch_layout;
  ASSERT_EQ(av_channel_layout_from_string(&layout, "ambisonic 1"), 0);
  use("pcm_s16le", sound(8000));
  play(0.26, 2.5);
  change_source(source);
  play(2.5, 2.6);
  EXPECT_EQ(dropped(AudioDrop::kDecode), 5u);
  change_source(sound(8000));
  play(2.6, 4.5);
  finish();
  expect_in_step(4, 0.002);
  EXPECT_EQ(counts().in, counts().out + 5);
}

TEST_F(AudioEncodeTest, AnEncoderThatDoesNotOpenLeavesTheFeedWithoutSound) {
  options_.audio_bitrate = 1000;
  use("mp2", sound(16'000));
  EXPECT_EQ(audio_->format(), nullptr);
  play(0, 0.1);
  EXPECT_EQ(dropped(AudioDrop::kEncoder), 5u);
  EXPECT_EQ(counts().in, 5u);
}

TEST_F(AudioEncodeTest, ABitRateThatIsLoweredIsLoggedOnce) {
  const LogCapture log;
  options_.audio_bitrate = 64'000;
  use("aac", sound(8000)).set_live(false);
  play(0, 0.5);
  {
    const testing::FailingAudioEncoder failing;
    play(0.5, 0.58);
  }
  play(0.58, 1.5);
  EXPECT_GE(dropped(AudioDrop::kEncoder), 1u);
  EXPECT_EQ(
      log.count(
          "aac takes at most 48000 bit/s at 8000 Hz with 1 channel, not the configured 64000"),
      1u);
}

TEST_F(AudioEncodeTest, WhatRunsOnceDoesNotGoWithoutTheSound) {
  once_ = true;
  options_.audio_bitrate = 1000;
  const FeedError error = error_of([&] { use("mp2", sound(16'000)); });
  EXPECT_EQ(error.code(), FeedFault::kEncoder);
  EXPECT_THAT(error.what(), StartsWith("encode live: sound: no audio encoder is available: mp2 "));
}

TEST_F(AudioEncodeTest, WhatRunsOnceDoesNotGoWithoutADecoder) {
  once_ = true;
  const FeedError error = error_of([&] { use("aac", sound(8000, 1, AV_CODEC_ID_PROBE)); });
  EXPECT_EQ(error.code(), FeedFault::kSource);
  EXPECT_THAT(error.what(), HasSubstr("cannot be decoded"));
}

TEST_F(AudioEncodeTest, WhatRunsOnceGoesOnWithoutADecoderWhileALiveSourceHasHadSound) {
  once_ = true;
  use("aac", sound(8000));
  change_source(sound(8000, 1, AV_CODEC_ID_PROBE));
  EXPECT_EQ(audio_->format(), nullptr);
  change_source(sound(8000));
  audio_->set_live(false);
  const FeedError error = error_of([&] { change_source(sound(8000, 1, AV_CODEC_ID_PROBE)); });
  EXPECT_EQ(error.code(), FeedFault::kSource);
}

TEST_F(AudioEncodeTest, WhereTheSourceWaitsAnEncoderThatFailsIsOpenedAgainAtOnce) {
  use("pcm_s16le", sound(8000)).set_live(false);
  play(0.26, 1.5);
  {
    const testing::FailingAudioEncoder failing;
    play(1.5, 1.58);
  }
  play(1.58, 4.5);
  finish();
  expect_in_step(4, 0.002);
  EXPECT_GE(dropped(AudioDrop::kEncoder), 1u);
  EXPECT_EQ(counts().in, counts().out + dropped(AudioDrop::kEncoder));
}

TEST_F(AudioEncodeTest, AnEncoderThatFailsAgainAndAgainEndsWhatRunsOnce) {
  once_ = true;
  use("pcm_s16le", sound(8000)).set_live(false);
  const testing::FailingAudioEncoder failing;
  const FeedError error = error_of([&] { play(0, 1); });
  EXPECT_EQ(error.code(), FeedFault::kEncoder);
  EXPECT_THAT(error.what(), HasSubstr("3 times"));
}

TEST_F(AudioEncodeTest, AConfigurationThatCannotWorkSaysSo) {
  const auto fault = [&](const std::string& encoder, AvOptions encoder_options) {
    return error_of([&] { use(encoder, sound(8000), std::move(encoder_options)); }).code();
  };
  EXPECT_EQ(fault("aac", {{"no_such", "1"}}), FeedFault::kConfiguration);
  EXPECT_EQ(fault("libx264", {}), FeedFault::kConfiguration);
}

TEST_F(AudioEncodeTest, WhatIsInFlightAtTheEndIsDropped) {
  use("aac", sound(8000));
  play(0, 1);
  EXPECT_GT(counts().in_flight, 0);
  audio_->drop(AudioDrop::kStop);
  EXPECT_EQ(counts().in_flight, 0);
  EXPECT_EQ(dropped(AudioDrop::kStop), counts().in - counts().out);
}

}  // namespace
}  // namespace framelane
