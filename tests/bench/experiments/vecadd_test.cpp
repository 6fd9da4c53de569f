#include <gmock/gmock.h>

#include "bench/harness/ceilings.hpp"
#include "bench/harness/suite.hpp"
#include "tests/bench/session.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(VecaddSuiteTest, OnTheCpuItAddsOnOneCore) {
  const Result result = run_suite(*find_suite("vecadd"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(result.rows[0].name, kCopyingAlone);
  EXPECT_EQ(result.rows[0].bytes, result.rows[1].bytes);
  for (const Row& row : result.rows) EXPECT_EQ(row.checked, Checked::kRight) << row.name;
  EXPECT_THAT(result.verdict, ElementsAre(AllOf(StartsWith("one core takes "),
                                                HasSubstr(" times what copying as many bytes "))));
  EXPECT_THAT(result.left_out, ElementsAre("segments over streams: no GPU in this test"));
}

}  // namespace
}  // namespace framelane::bench
