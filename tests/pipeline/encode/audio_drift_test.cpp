// Not built for ThreadSanitizer: what it tests has one thread.
// Sound whose clock is faster or slower than the picture's.
#include <gtest/gtest.h>

#include <string>

#include "tests/pipeline/encode/audio_encode_fixture.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

/// The parameter is how many seconds it plays.
class DriftingAudioTest : public AudioEncodeTest, public ::testing::WithParamInterface<int> {};

// A day is simulated in audio_sync_test.cpp; this shows that the resampler does what it says.
TEST_P(DriftingAudioTest, KeepsStep) {
  every_ = 60;
  beep_ = 0.2;
  for (const double ppm : {200.0, -200.0}) {
    use("pcm_s16le", sound(500));
    play(30, GetParam() - 30, 0.2, [ppm](double time) { return time * (1 + ppm / 1e6); });
    finish();
    expect_in_step(GetParam() / 60 - 1, 0.010);
    EXPECT_EQ(repairs(AudioRepair::kSilence) + repairs(AudioRepair::kTrim), 0u) << ppm;
  }
}
// The sanitizers run only the shorter one.
INSTANTIATE_TEST_SUITE_P(For, DriftingAudioTest, ::testing::Values(10 * 60, 2 * 3600),
                         [](const auto& length) {
                           return std::to_string(length.param / 60) + "Minutes";
                         });

}  // namespace
}  // namespace framelane
