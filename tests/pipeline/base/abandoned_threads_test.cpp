#include "pipeline/base/abandoned_threads.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace framelane {
namespace {

TEST(AbandonableThreadTest, IsStuckFromWhenItIsAbandonedUntilItEnds) {
  const std::uint64_t abandoned = threads_abandoned();
  const std::uint64_t stuck = threads_stuck();
  AbandonableThread thread;
  thread.abandon();
  thread.abandon();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(threads_stuck(), stuck + 1);
  thread.end();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(threads_stuck(), stuck);
}

TEST(AbandonableThreadTest, CountsNothingIfItHasEndedBefore) {
  const std::uint64_t abandoned = threads_abandoned();
  const std::uint64_t stuck = threads_stuck();
  AbandonableThread thread;
  thread.end();
  thread.abandon();
  EXPECT_EQ(threads_abandoned(), abandoned);
  EXPECT_EQ(threads_stuck(), stuck);
}

TEST(AbandonableThreadTest, CountsRightIfThreadsEndWhileTheyAreAbandoned) {
  const std::uint64_t stuck = threads_stuck();
  std::vector<AbandonableThread> threads(1000);
  {
    const std::jthread ends([&] {
      for (AbandonableThread& thread : threads) thread.end();
    });
    for (AbandonableThread& thread : threads) thread.abandon();
  }
  EXPECT_EQ(threads_stuck(), stuck);
}

}  // namespace
}  // namespace framelane
