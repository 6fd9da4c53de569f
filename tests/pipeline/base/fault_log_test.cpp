// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/base/fault_log.hpp"

#include <gtest/gtest.h>

#include "tests/pipeline/base/log_capture.hpp"

namespace framelane {
namespace {

using std::chrono::seconds;

class FaultLogTest : public ::testing::Test {
 protected:
  void fail(const std::string& cause, int at) {
    faults_.failed("refused", cause, "trying again", start_ + seconds(at));
  }

  testing::LogCapture log_;
  FaultLog faults_{"feed gate"};
  FaultLog::Clock::time_point start_ = FaultLog::Clock::now();
};

TEST_F(FaultLogTest, ACauseIsWrittenOnceAndThenSummedUpOnceAMinute) {
  for (int second = 0; second < 150; ++second) fail("refused", second);
  EXPECT_EQ(log_.count("feed gate: refused; trying again"), 1u);
  EXPECT_EQ(log_.count("feed gate: refused (59 more times in 60 s)"), 1u);
  EXPECT_EQ(log_.count("feed gate: refused (60 more times in 60 s)"), 1u);
  EXPECT_EQ(log_.count("\n"), 3u);
}

TEST_F(FaultLogTest, CausesThatTakeTurnsAreEachWrittenOnce) {
  for (int second = 0; second < 60; ++second) fail(second % 2 == 0 ? "refused" : "silent", second);
  EXPECT_EQ(log_.count("refused"), 1u);
  EXPECT_EQ(log_.count("silent"), 1u);
}

TEST_F(FaultLogTest, CausesThatDifferOnlyInNumbersAreOne) {
  fail("a-9.ts: the disk is full", 0);
  fail("a-10.ts: the disk is full", 1);
  fail("b-10.ts: the disk is full", 2);
  EXPECT_EQ(log_.count("a-9.ts: the disk is full; trying again"), 1u);
  EXPECT_EQ(log_.count("a-10.ts"), 0u);
  EXPECT_EQ(log_.count("b-10.ts"), 1u);
}

TEST_F(FaultLogTest, WhatACauseCameToIsWrittenThoughAnotherFollowed) {
  for (int second = 0; second < 10; ++second) fail("refused", second);
  for (int second = 10; second < 62; ++second) fail("silent", second);
  EXPECT_EQ(log_.count("feed gate: refused (9 more times in 60 s)"), 1u);
}

TEST_F(FaultLogTest, ACauseThatIsRareIsWrittenEachTime) {
  for (int minute = 0; minute < 4; ++minute) fail("refused", 70 * minute);
  EXPECT_EQ(log_.count("feed gate: refused; trying again"), 4u);
}

TEST_F(FaultLogTest, ARecoveryIsToldOnceWithTheNumberOfTriesAndWhatRuns) {
  EXPECT_FALSE(faults_.recovered("h264"));
  fail("refused", 0);
  fail("silent", 1);
  EXPECT_TRUE(faults_.recovered("h264"));
  EXPECT_FALSE(faults_.recovered("h264"));
  EXPECT_EQ(log_.count("feed gate: running again after 2 failed tries (h264)"), 1u);
  EXPECT_EQ(log_.count("running"), 1u);
  fail("refused", 2);
  EXPECT_TRUE(faults_.recovered());
  EXPECT_EQ(log_.count("feed gate: running again after 1 failed try\n"), 1u);
}

TEST_F(FaultLogTest, AFaultAfterARecoveryIsWrittenAtOnce) {
  fail("refused", 0);
  faults_.recovered();
  fail("refused", 1);
  EXPECT_EQ(log_.count("feed gate: refused; trying again"), 2u);
}

}  // namespace
}  // namespace framelane
