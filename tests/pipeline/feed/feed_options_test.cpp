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

TEST(FeedOptionsTest, OutputsAreChangedAloneUnlessTheyAreRenditions) {
  FeedOptions a;
  a.outputs.resize(2);
  a.outputs[0].master = "master.m3u8";
  FeedOptions b = a;
  EXPECT_TRUE(can_change_in_run(a, b));
  b.outputs[1].queue = 3;
  b.outputs.emplace_back();
  EXPECT_TRUE(can_change_in_run(a, b));
  b.outputs[0].queue = 3;
  EXPECT_FALSE(can_change_in_run(a, b));
  b = a;
  b.input.mask.emplace_back();
  EXPECT_TRUE(can_change_in_run(a, b));
  b = a;
  b.ring = 3;
  EXPECT_FALSE(can_change_in_run(a, b));
}

}  // namespace
}  // namespace framelane
