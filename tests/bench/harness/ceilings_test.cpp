#include "bench/harness/ceilings.hpp"

#include <gmock/gmock.h>

#include "pipeline/frames/host_buffer.hpp"

namespace framelane::bench {
namespace {

using ::testing::HasSubstr;

TEST(CopyingAloneTest, MovesHalfOfTheBytesOfAllWorksAndMissesNone) {
  constexpr std::size_t kWorks = 3;
  const std::size_t before = host_memory_bytes();
  {
    const Contender copying = copying_alone({{"size", "1x1"}}, 4'000'000, kWorks);
    const std::size_t taken = host_memory_bytes() - before;
    EXPECT_GE(taken, kWorks * 4'000'000);
    EXPECT_LT(taken, kWorks * 4'000'000 + 200'000);  // whole pages
    EXPECT_EQ(copying.row.bytes, 4'000'000);
    EXPECT_TRUE(copying.row.is(kCopyingAlone, {{"size", "1x1"}}));
    copying.prepare();
    EXPECT_THAT(copying.check(), HasSubstr(" is 0 instead of "));
    EXPECT_GT(copying.work(), 0);
    EXPECT_EQ(copying.check(), "");
    copying.prepare();
    EXPECT_NE(copying.check(), "");
  }
  EXPECT_EQ(host_memory_bytes(), before);
}

}  // namespace
}  // namespace framelane::bench
