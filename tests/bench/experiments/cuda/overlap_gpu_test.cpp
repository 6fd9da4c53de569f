#include <gmock/gmock.h>

#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OverlapGpuTest : public CudaTest {};
class BrokenOverlapGpuTest : public StandInTest {};

TEST_F(OverlapGpuTest, OverlapIsRightInEveryWay) {
  const Result result = run("overlap", gpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "in turn"), 2);
  // Five chunks of 64 KiB, two of 256 KiB, and one in each of the larger sizes.
  EXPECT_EQ(count(result, "in chunks"), 2 * ((3 + 2 + 4) + (2 + 1)));
  for (const char* name : {"in turn", "in chunks"}) expect_measured_and_right(result, name);
  EXPECT_THAT(result.verdict, Contains(HasSubstr("the order of issue")));
  EXPECT_EQ(result.charts.size(), 4u);
}

TEST_F(OverlapGpuTest, OverlapIsRightOverManyStreamsAndWithLargeChunks) {
  Session session = gpu_session();
  session.bytes = 2 << 20;
  const Result result = run("overlap", session);
  EXPECT_THAT(result.problems, IsEmpty());
  // 32 chunks of 64 KiB, 8 of 256 KiB, 2 of 1 MiB, and one in each of the larger sizes.
  EXPECT_EQ(count(result, "in chunks"), 2 * ((6 + 4 + 2 + 3) + (5 + 3 + 1)));
  for (const char* name : {"in turn", "in chunks"}) expect_measured_and_right(result, name);
  for (const char* order : {"depth first", "breadth first"}) {
    for (const std::int64_t streams : {8, 16, 32}) {
      EXPECT_NE(result.measured("in chunks", {{"order", order}, {"streams", streams}}), nullptr);
    }
    EXPECT_NE(result.measured("in chunks", {{"order", order}, {"chunk KiB", std::int64_t{1024}}}),
              nullptr);
  }
  EXPECT_THAT(result.verdict, Contains(HasSubstr(" of 9 pairs of chunk and streams ")));
  EXPECT_THAT(result.verdict, Contains(HasSubstr(" copy engines: ")));
}

TEST_F(BrokenOverlapGpuTest, AWrongByteFailsOverlap) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("overlap", session);
  EXPECT_THAT(result.problems,
              Contains(HasSubstr("wrong result of in turn, memory pinned: byte ")));
  EXPECT_THAT(
      result.problems,
      Contains(HasSubstr("wrong result of in chunks, memory pageable, order breadth first")));
}

}  // namespace
}  // namespace framelane::bench
