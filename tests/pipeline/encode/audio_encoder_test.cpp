// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/encode/audio_encoder.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"

namespace framelane {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::StartsWith;

ChosenAudioEncoder choose(std::vector<CodecCandidate> encoders, int rate, int channels = 1,
                          std::optional<std::int64_t> bitrate = {}) {
  EncodeOptions options;
  options.name = "live";
  options.audio_codecs = std::move(encoders);
  options.audio_bitrate = bitrate;
  return choose_audio_encoder(options, rate, channels);
}

std::string refused_codec(std::vector<CodecCandidate> encoders, int channels = 1) {
  try {
    choose(std::move(encoders), 48'000, channels);
  } catch (const FeedError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(AudioEncoderTest, TheEncoderTakesTheNearestRate) {
  EXPECT_EQ(choose({{"mp2"}}, 8000).encoder->sample_rate, 16'000);
  EXPECT_EQ(choose({{"aac"}}, 11'000).encoder->sample_rate, 11'025);
  EXPECT_EQ(choose({{"aac"}}, 192'000).encoder->sample_rate, 96'000);
}

TEST(AudioEncoderTest, AacGetsNoMoreBitsThanTheStandardAllows) {
  EXPECT_EQ(choose({{"aac"}}, 8000, 1, 64'000).encoder->bit_rate, 48'000);
  EXPECT_EQ(choose({{"aac"}}, 8000, 2, 64'000).encoder->bit_rate, 64'000);
  EXPECT_EQ(choose({{"aac"}}, 8000).encoder->bit_rate, 48'000);
}

TEST(AudioEncoderTest, TheFirstEncoderThatOpensIsUsed) {
  const auto chosen = choose({{"no_such"}, {"mp2"}, {"pcm_s16le"}}, 16'000, 1, 1000);
  EXPECT_EQ(chosen.target.candidate.name, "pcm_s16le");
  EXPECT_THAT(chosen.passed_over, StartsWith("no_such is not in this FFmpeg; mp2 does not open"));
}

TEST(AudioEncoderTest, AnEncoderOfPicturesIsNamedAsWhatItIs) {
  EXPECT_EQ(refused_codec({{"libx264"}}),
            "no audio encoder is available: libx264 is no audio encoder; name another one, such "
            "as aac");
}

TEST(AudioEncoderTest, NoRefusalNamesAacAsTheRemedyOfItself) {
  EXPECT_THAT(refused_codec({{"no_such"}, {"aac"}}, 12),
              AllOf(StartsWith("no audio encoder is available: no_such is not in this FFmpeg; aac "
                               "does not open for sound of 48000 Hz and 12 channels: "),
                    EndsWith("; name another one")));
}

TEST(AudioEncoderTest, AnOptionThatTheEncoderDoesNotHaveIsNamed) {
  EXPECT_THAT(refused_codec({{"aac", {{"no_such", "1"}}}}),
              StartsWith("aac has no option \"no_such\""));
}

}  // namespace
}  // namespace framelane
