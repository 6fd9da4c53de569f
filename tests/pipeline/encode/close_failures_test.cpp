#include "pipeline/encode/close_failures.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

TEST(CloseFailuresTest, TheThirdInCloseSuccessionIsOneTooMany) {
  CloseFailures failures;
  EXPECT_FALSE(failures.failed());
  EXPECT_FALSE(failures.failed());
  EXPECT_TRUE(failures.failed());
  EXPECT_EQ(failures.text(), "3 times in close succession");
}

TEST(CloseFailuresTest, EarlierFailuresCountUntilTheEncoderHasWorkedForLong) {
  for (const bool long_enough : {false, true}) {
    CloseFailures failures;
    failures.failed();
    failures.failed();
    for (int i = long_enough ? 0 : 1; i < CloseFailures::kHealthyPackets; ++i) failures.worked();
    EXPECT_EQ(failures.failed(), !long_enough);
  }
}

TEST(CloseFailuresTest, PacketsCountFromTheLastFailure) {
  CloseFailures failures;
  for (int failure = 1; failure <= 3; ++failure) {
    for (int i = 1; i < CloseFailures::kHealthyPackets; ++i) failures.worked();
    EXPECT_EQ(failures.failed(), failure == 3);
  }
}

}  // namespace
}  // namespace framelane
