// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/base/failure.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace framelane {
namespace {

TEST(FaultCodeTest, FaultsWithALabelAreCalledAsInTheMetrics) {
  EXPECT_EQ(fault_code(IoError(IoFault::kRefused, "nobody listens")), "refused");
  EXPECT_EQ(fault_code(FeedError(FeedFault::kEncoder, "it does not open")), "encoder");
  EXPECT_EQ(fault_code(RetentionFault::kDelete), "delete");
}

TEST(FaultCodeTest, FinalFaultsHaveNamesToo) {
  EXPECT_EQ(fault_code(FeedError(FeedFault::kConfiguration, "no such option")), "configuration");
  EXPECT_EQ(fault_code(FeedFault::kSource), "source");
}

TEST(FaultCodeTest, OtherErrorsHaveNone) { EXPECT_EQ(fault_code(std::runtime_error("a bug")), ""); }

}  // namespace
}  // namespace framelane
