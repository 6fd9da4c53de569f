#include <gmock/gmock.h>

#include "bench/harness/suite.hpp"
#include "tests/bench/session.hpp"

namespace framelane::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ReduceSuiteTest, OnTheCpuItAddsInThreeWaysBesideReadingAloneAndCountsLuma) {
  const Result result = run_suite(*find_suite("reduce"), cpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  ASSERT_EQ(result.rows.size(), 4u + 2);
  for (const Row& row : result.rows) EXPECT_EQ(row.checked, Checked::kRight) << row.name;
  EXPECT_EQ(result.rows[0].name, "CPU, reading alone");  // the ceiling is first
  EXPECT_TRUE(result.rows[5].is("CPU, BGRA to NV12 and luma", {{"size", "37x23"}}));
  EXPECT_THAT(result.verdict, Contains(HasSubstr(" times what reading the picture takes, which ")));
}

TEST(ReduceSuiteTest, APictureWhoseSumWouldBeRoundedIsRefused) {
  Session session = cpu_session();
  session.width = 16384;
  session.height = 1025;
  EXPECT_THAT(run_suite(*find_suite("reduce"), session).problems,
              ElementsAre(HasSubstr("use a --size of ")));
}

}  // namespace
}  // namespace framelane::bench
