// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/encode/audio_sync.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace framelane {
namespace {

using StepKind = AudioSync::Step::Kind;

constexpr int kRate = 8000;
constexpr int kFrame = 160;
constexpr std::int64_t kMs = kRate / 1000;

/// Plays frames whose timestamps come from `stamp`, and does what the steps say as a resampler
/// would.
class AudioSyncTest : public ::testing::Test {
 protected:
  /// Returns the largest error of a frame (samples), after its step.
  double play(int frames, const std::function<double(int)>& stamp) {
    double worst = 0;
    for (int i = 0; i < frames; ++i) {
      const std::int64_t start = std::llround(stamp(i));
      AudioSync::Step step = sync_.step(start, kFrame, std::llround(here_));
      if (step.kind != StepKind::kSteady) ++corrections_;
      last_ = step.kind;
      if (step.kind == StepKind::kJump) {
        here_ = static_cast<double>(start);
        step = sync_.step(start, kFrame, start);
        EXPECT_EQ(step.kind, StepKind::kSteady);
      }
      if (step.kind == StepKind::kTrim) here_ -= static_cast<double>(step.samples);
      if (step.kind == StepKind::kSilence) here_ += static_cast<double>(step.samples);
      worst = std::max(worst, std::abs(static_cast<double>(start) - here_));
      here_ += kFrame * (1 + static_cast<double>(step.stretch) / sync_.stretch_span());
    }
    return worst;
  }

  AudioSync sync_{kRate};
  double here_ = 0;  // where the next sample would lie
  int corrections_ = 0;
  StepKind last_ = StepKind::kSteady;
};

TEST_F(AudioSyncTest, ExactTimestampsNeedNothing) {
  EXPECT_EQ(play(1000, [](int i) { return i * kFrame; }), 0);
  EXPECT_EQ(corrections_, 0);
}

TEST_F(AudioSyncTest, ADayOfDriftIsFollowedWithoutACut) {
  for (const double ppm : {200.0, -200.0, 500.0, -500.0}) {
    sync_ = AudioSync(kRate);
    here_ = 0;
    const double worst =
        play(24 * 3600 * 50, [ppm](int i) { return i * kFrame * (1 + ppm / 1e6); });
    EXPECT_LT(worst, 8 * kMs) << ppm;
    EXPECT_EQ(corrections_, 0) << ppm;
  }
}

TEST_F(AudioSyncTest, AHoleIsFilledAtOnce) {
  EXPECT_EQ(play(100, [](int i) { return (i < 50 ? i : i + 2) * kFrame; }), 0);
  EXPECT_EQ(corrections_, 1);
}

TEST_F(AudioSyncTest, ASmallErrorIsRemovedSlowly) {
  EXPECT_LE(play(100, [](int i) { return i * kFrame + (i < 50 ? 0 : 10 * kMs); }), 10 * kMs);
  EXPECT_LT(play(3000, [](int i) { return (i + 100) * kFrame + 10 * kMs; }), 10 * kMs);
  EXPECT_LT(play(100, [](int i) { return (i + 3100) * kFrame + 10 * kMs; }), 1 * kMs);
  EXPECT_EQ(corrections_, 0);
}

TEST_F(AudioSyncTest, AnOverlapIsTrimmed) {
  EXPECT_EQ(play(51, [](int i) { return i < 50 ? i * kFrame : (i - 10) * kFrame; }), 0);
  EXPECT_EQ(last_, StepKind::kTrim);
}

TEST_F(AudioSyncTest, ALongHoleIsAJump) {
  EXPECT_EQ(play(51, [](int i) { return (i < 50 ? i : i + 3600 * 50) * kFrame; }), 0);
  EXPECT_EQ(last_, StepKind::kJump);
}

// A camera that stamps packets by a clock of its own: the sound must not be cut up.
TEST_F(AudioSyncTest, JitterIsToleratedOnceItIsSeen) {
  play(100, [](int i) { return i * kFrame + (i % 2 != 0 ? 12 * kMs : -12 * kMs); });
  corrections_ = 0;
  play(3000, [](int i) { return (i + 100) * kFrame + (i % 2 != 0 ? 12 * kMs : -12 * kMs); });
  EXPECT_EQ(corrections_, 0);
}

TEST_F(AudioSyncTest, OneOverlapAloneIsNotTakenForJitter) {
  play(100, [](int i) { return (i < 50 ? i : i - 2) * kFrame; });
  EXPECT_EQ(play(50, [](int i) { return (i + 100) * kFrame; }), 0);
  EXPECT_EQ(corrections_, 2);
  EXPECT_EQ(last_, StepKind::kSteady);
}

TEST_F(AudioSyncTest, JumpsAreNotTakenForJitter) {
  const auto pauses = [](int i) { return (i + i / 50 * 100) * kFrame; };
  play(200, pauses);
  EXPECT_EQ(corrections_, 3);
  EXPECT_EQ(play(50, [&](int i) { return pauses(199) + (i + 2) * kFrame; }), 0);
  EXPECT_EQ(corrections_, 4);
}

TEST_F(AudioSyncTest, HolesAreNotTakenForJitter) {
  int lost = 0;  // every tenth packet
  const double worst = play(1000, [&](int i) {
    if (i % 10 == 9) ++lost;
    return (i + lost) * kFrame;
  });
  EXPECT_EQ(worst, 0);
  EXPECT_EQ(corrections_, 100);
}

}  // namespace
}  // namespace framelane
