#include "pipeline/base/backoff.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace framelane {
namespace {

using namespace std::chrono_literals;

const BackoffOptions kOptions{1000ms, 60000ms};

void expect_near(std::chrono::milliseconds wait, std::chrono::milliseconds nominal) {
  EXPECT_GE(wait, nominal * 8 / 10);
  EXPECT_LE(wait, nominal * 12 / 10);
}

TEST(BackoffTest, WaitsDoubleFromFirstUpToMax) {
  Backoff backoff(kOptions, 1);
  for (const auto nominal : {1000ms, 2000ms, 4000ms, 8000ms, 16000ms, 32000ms}) {
    expect_near(backoff.next(), nominal);
  }
  for (int i = 0; i < 20; ++i) {
    const auto wait = backoff.next();
    EXPECT_GE(wait, 48000ms);
    EXPECT_LE(wait, 60000ms);
  }
}

TEST(BackoffTest, DifferentSeedsDoNotWaitInStep) {
  Backoff one(kOptions, 1);
  Backoff two(kOptions, 2);
  EXPECT_NE(one.next(), two.next());
}

TEST(BackoffTest, AMinuteOfSuccessStartsAnew) {
  Backoff backoff(kOptions, 1);
  for (int i = 0; i < 5; ++i) backoff.next();
  const Backoff::Clock::time_point start{1000s};
  backoff.succeeded(start);
  backoff.succeeded(start + 60s);
  expect_near(backoff.next(), 1000ms);
}

TEST(BackoffTest, ShorterSuccessDoesNotStartAnew) {
  Backoff backoff(kOptions, 1);
  backoff.next();
  backoff.next();
  const Backoff::Clock::time_point start{1000s};
  backoff.succeeded(start);
  backoff.succeeded(start + 59s);
  expect_near(backoff.next(), 4000ms);
}

TEST(BackoffTest, FailureInterruptsTheMinute) {
  Backoff backoff(kOptions, 1);
  backoff.next();
  const Backoff::Clock::time_point start{1000s};
  backoff.succeeded(start);
  backoff.next();
  backoff.succeeded(start + 61s);
  expect_near(backoff.next(), 4000ms);
}

TEST(SleepForTest, StopEndsIt) {
  std::stop_source stop;
  std::jthread stopper([&stop] { stop.request_stop(); });
  EXPECT_FALSE(sleep_for(1h, stop.get_token()));
}

TEST(SleepForTest, TimeEndsIt) { EXPECT_TRUE(sleep_for(1ms, {})); }

}  // namespace
}  // namespace framelane
