// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/feed/feed_options.hpp"

#include <gtest/gtest.h>

namespace framelane {
namespace {

TEST(BlocksWhenFullTest, FollowsTheSourceUnlessToldOtherwise) {
  EXPECT_TRUE(blocks_when_full(OnFull::kAuto, false));
  EXPECT_FALSE(blocks_when_full(OnFull::kAuto, true));
  EXPECT_TRUE(blocks_when_full(OnFull::kBlock, true));
  EXPECT_FALSE(blocks_when_full(OnFull::kDrop, false));
}

}  // namespace
}  // namespace framelane
