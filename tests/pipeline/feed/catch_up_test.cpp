// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/feed/catch_up.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace framelane {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

class CatchUpTest : public ::testing::Test {
 protected:
  /// How long the frame may wait. `arrived`: since an origin of no meaning.
  milliseconds wait(milliseconds time, milliseconds arrived) {
    const CatchUp::Clock::time_point at(arrived);
    return std::chrono::duration_cast<milliseconds>(catch_up_.deadline(time, at) - at);
  }
  /// Ten seconds of frames that come as they were taken, 40 ms apart.
  void run_in_time() {
    for (milliseconds time = 0ms; time < 10s; time += 40ms) EXPECT_EQ(wait(time, 7s + time), 0ms);
  }

  CatchUp catch_up_{true};
};

TEST_F(CatchUpTest, FramesThatComeInTimeDoNotWait) { run_in_time(); }

TEST_F(CatchUpTest, ABurstMayTakeAsLongAsItsFramesAreApart) {
  run_in_time();
  for (milliseconds behind = 0ms; behind <= 3s; behind += 40ms) {
    EXPECT_EQ(wait(10s + behind, 20s), behind);
  }
}

TEST_F(CatchUpTest, AfterABurstTheWaitShrinksToNothing) {
  run_in_time();
  EXPECT_EQ(wait(10s, 20s), 0ms);  // three seconds late
  milliseconds last = wait(13s, 20s);
  EXPECT_EQ(last, 3s);
  for (milliseconds time = 13'040ms; time < 38s; time += 40ms) {
    const milliseconds now = wait(time, 7s + time);
    EXPECT_LE(now, last);
    last = now;
  }
  EXPECT_EQ(last, 0ms);
}

TEST_F(CatchUpTest, NoFrameWaitsForLongerThanTheMost) {
  run_in_time();
  EXPECT_EQ(wait(10s, 80s), 0ms);
  EXPECT_EQ(wait(70s, 80s), CatchUp::kMost);
}

/// A source of 25 frames/s and a ring of eight. From the tenth second to the 13th nothing runs.
class CatchUpModel {
 public:
  CatchUpModel(bool patient, milliseconds encode_time)
      : catch_up_(patient), encode_time_(encode_time) {}

  /// Reads the frames that were taken before `end`.
  void run_until(milliseconds end) {
    for (; taken_ < end; taken_ += 40ms) {
      const bool asleep = taken_ >= 10s && taken_ < 13s;
      now_ = std::max(now_, asleep ? 13s : taken_) + 2ms;  // decoding
      offer();
    }
  }
  /// By how much reading is behind.
  milliseconds late() const { return now_ - taken_; }
  int dropped() const { return dropped_; }

 private:
  void offer() {
    const milliseconds deadline =
        std::chrono::duration_cast<milliseconds>(since(catch_up_.deadline(taken_, at(now_))));
    while (!ring_.empty() && ring_.front() <= now_) ring_.pop_front();
    if (ring_.size() == 8) {
      const milliseconds freed = ring_.front();
      now_ = std::max(now_, std::min(freed, deadline));
      if (now_ < freed) {
        ++dropped_;
        return catch_up_.missed(at(now_));
      }
      ring_.pop_front();
    }
    ring_.push_back((ring_.empty() ? now_ : std::max(now_, ring_.back())) + encode_time_);
  }
  static CatchUp::Clock::time_point at(milliseconds time) {
    return CatchUp::Clock::time_point(time);
  }
  static CatchUp::Clock::duration since(CatchUp::Clock::time_point time) {
    return time.time_since_epoch();
  }

  CatchUp catch_up_;
  const milliseconds encode_time_;
  std::deque<milliseconds> ring_;  // when each frame's encode ends
  milliseconds taken_{0};          // the next frame
  milliseconds now_{0};
  int dropped_ = 0;
};

TEST(CatchUpModelTest, EncodesThatAreFastEnoughGetTheWholeBurst) {
  for (const milliseconds encode_time : {1ms, 10ms, 30ms, 34ms}) {
    CatchUpModel feed(true, encode_time);
    feed.run_until(60s);
    EXPECT_EQ(feed.dropped(), 0) << encode_time.count();
  }
}

TEST(CatchUpModelTest, WithEncodesThatAreTooSlowReadingIsSoonInTime) {
  for (const milliseconds encode_time : {45ms, 80ms, 300ms}) {
    CatchUpModel feed(true, encode_time);
    feed.run_until(14'500ms);
    EXPECT_LE(feed.late(), 40ms) << encode_time.count();
    feed.run_until(60s);
    EXPECT_LE(feed.late(), 40ms) << encode_time.count();
  }
}

TEST(CatchUpModelTest, WhatDoesNotWaitForItsReaderIsReadAtOnce) {
  for (const milliseconds encode_time : {10ms, 30ms, 45ms, 300ms}) {
    CatchUpModel feed(false, encode_time);
    feed.run_until(13'200ms);
    EXPECT_LE(feed.late(), 500ms) << encode_time.count();
    feed.run_until(60s);
    EXPECT_LE(feed.late(), 40ms) << encode_time.count();
  }
}

}  // namespace
}  // namespace framelane
