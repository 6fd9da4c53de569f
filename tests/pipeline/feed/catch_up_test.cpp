// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/feed/catch_up.hpp"

#include <gtest/gtest.h>

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

  CatchUp catch_up_;
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

}  // namespace
}  // namespace framelane
