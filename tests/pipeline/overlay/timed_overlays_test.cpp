#include "pipeline/overlay/timed_overlays.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/overlay/fonts.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/overlay/held_fonts.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::chrono::system_clock::time_point kFirstSecond{1'767'323'045s};

class TimedOverlaysTest : public ::testing::Test {
 protected:
  TimedOverlaysTest() { options_[0].text = "%T"; }
  void TearDown() override {
    fonts_.release();
    cancel_ = std::stop_source();
    EXPECT_TRUE(testing::comes_true([this] { return !refusal(60s); }));
    EXPECT_TRUE(none_is_stuck());
  }
  /// Waits until the threads that this test has abandoned have ended.
  bool none_is_stuck() const {
    return testing::comes_true([this] { return threads_stuck() == stuck_; });
  }
  std::unique_ptr<TimedOverlays> make(std::chrono::milliseconds limit) {
    return std::make_unique<TimedOverlays>(
        options_, TimedOverlays::Frames{{200, 100}, {1, 1}, PixelFormat::kGray8, {}}, limit,
        cancel_.get_token());
  }
  /// Why they cannot be made now; nothing if they can.
  std::optional<std::string> refusal(std::chrono::milliseconds limit) {
    try {
      make(limit);
      return {};
    } catch (const FeedError& error) {
      EXPECT_EQ(error.code(), FeedFault::kEncoder);
      return error.what();
    }
  }

  const std::uint64_t stuck_ = threads_stuck();
  testing::HeldFonts fonts_;
  std::stop_source cancel_;
  std::vector<OverlayOptions> options_{1};
};

TEST_F(TimedOverlaysTest, DrawATextAgainWhenItChangesAlone) {
  const auto overlays = make(60s);
  const auto first = overlays->at(kFirstSecond);
  EXPECT_EQ(overlays->at(kFirstSecond + 100ms), first);
  EXPECT_NE(overlays->at(kFirstSecond + 1s), first);
}

TEST_F(TimedOverlaysTest, FontsThatHangAreAnErrorAndItsThreadIsAbandonedOnce) {
  fonts_.hold();
  const std::uint64_t abandoned = threads_abandoned();
  EXPECT_THAT(refusal(100ms).value_or(""), HasSubstr("could not be read in 0.1 s"));
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_THAT(refusal(1h).value_or(""), HasSubstr("are still being read"));  // at once
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
}

TEST_F(TimedOverlaysTest, AThreadThatWasOnlySlowIsStuckNoMore) {
  fonts_.hold();
  ASSERT_TRUE(refusal(100ms));
  EXPECT_EQ(threads_stuck(), stuck_ + 1);
  fonts_.release();
  EXPECT_TRUE(none_is_stuck());
}

TEST_F(TimedOverlaysTest, FontsThatHungAreReadOnceTheyCanBe) {
  fonts_.hold();
  ASSERT_TRUE(refusal(100ms));
  fonts_.release();
  EXPECT_TRUE(testing::comes_true([this] { return !refusal(60s); }));
}

TEST_F(TimedOverlaysTest, AFontThatHangsWhenATextIsDrawnIsAnError) {
  const auto overlays = make(500ms);
  fonts_.hold_font();
  try {
    overlays->at(kFirstSecond);
    ADD_FAILURE() << "it has been drawn";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kEncoder);
    EXPECT_THAT(error.what(), HasSubstr("could not be read in 0.5 s"));
  }
}

TEST_F(TimedOverlaysTest, WhoAsksForFontsThatHangHearsSoAndDoesNotWaitTwice) {
  fonts_.hold();
  const std::uint64_t abandoned = threads_abandoned();
  EXPECT_THAT(why_no_system_font(100ms).value_or(""), HasSubstr("cannot be read in time"));
  EXPECT_THAT(why_no_system_font(1h).value_or(""), HasSubstr("cannot be read in time"));
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(threads_stuck(), stuck_ + 1);
  fonts_.release();
  EXPECT_TRUE(testing::comes_true([] { return !why_no_system_font(60s); }));
  EXPECT_TRUE(none_is_stuck());
}

TEST_F(TimedOverlaysTest, ACancelEndsTheWaiting) {
  fonts_.hold();
  cancel_.request_stop();
  EXPECT_TRUE(refusal(1h));
}

TEST_F(TimedOverlaysTest, WhatCannotBeUsedIsToldAsItIs) {
  options_[0].image = "/nowhere.png";
  try {
    make(60s);
    ADD_FAILURE() << "there is no such image";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere.png cannot be read"));
  }
  options_[0].image.clear();
}

}  // namespace
}  // namespace framelane
