#include <gmock/gmock.h>

#include <algorithm>

#include "bench/experiments/segmented_add.hpp"
#include "bench/harness/gpu_part.hpp"
#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VecaddGpuTest : public CudaTest {};
class BrokenVecaddGpuTest : public StandInTest {};

TEST_F(VecaddGpuTest, VecaddIsRightInEveryWay) {
  const Result result = run("vecadd", gpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "GPU, segments"), 4);
  for (const char* name : {"GPU, in one piece", "GPU, segments", "CPU, one core"}) {
    expect_measured_and_right(result, name);
  }
  EXPECT_NE(result.measured("uploads alone"), nullptr);
  EXPECT_THAT(result.verdict, Contains(HasSubstr(" times what the uploads alone take")));
  EXPECT_THAT(result.verdict, Contains(HasSubstr("right for every length from 0 to 444")));
}

TEST_F(BrokenVecaddGpuTest, AWrongByteFailsVecadd) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("vecadd", session);
  EXPECT_THAT(result.problems,
              ElementsAre(HasSubstr("wrong result of 1 elements in segments of ")));
}

TEST_F(BrokenVecaddGpuTest, AWrongByteOfALongVectorFailsVecaddToo) {
  const Session session = gpu_session();
  stand_in::spoil_downloads(1000);  // bytes: none of the lengths that are tried before
  const Result result = run("vecadd", session);
  EXPECT_EQ(result.problems.size(), 5u);  // every way over the GPU
  EXPECT_THAT(result.problems, Contains(HasSubstr("wrong result of GPU, in one piece: byte ")));
  expect_measured_and_right(result, "CPU, one core");
}

TEST_F(VecaddGpuTest, SegmentsAddVectorsOfEveryLength) {
  const Session session = gpu_session();
  constexpr std::size_t kMost = 700;
  std::vector<float> a(kMost), b(kMost);
  for (std::size_t i = 0; i < kMost; ++i) {
    a[i] = static_cast<float>(i) + 0.5F;
    b[i] = static_cast<float>(i * i % 1009);
  }
  constexpr float kUntouched = -1;
  for (const std::size_t segment : {std::size_t{1}, std::size_t{32}, std::size_t{100}, kMost}) {
    for (const int streams : {1, 2, 4}) {
      const SegmentedAdd adder(context_of(session), streams, segment);
      // Around every multiple of the segment, and in between.
      const std::size_t most = std::min(kMost, segment * 9 + 1);
      for (const IssueOrder order : kIssueOrders) {
        std::vector<float> expected(kMost, kUntouched);
        std::size_t added = 0;
        for (std::size_t length = 0; length<most; length += segment> 100 ? 13 : 1) {
          for (; added < length; ++added) expected[added] = a[added] + b[added];
          std::vector<float> sum(kMost, kUntouched);
          adder.run(order, a.data(), b.data(), sum.data(), length);
          const auto wrong = std::ranges::mismatch(sum, expected).in1;
          ASSERT_EQ(wrong, sum.end())
              << "element " << wrong - sum.begin() << " of " << length << " in segments of "
              << segment << " over " << streams << " streams, " << name_of(order);
        }
      }
    }
  }
}

}  // namespace
}  // namespace framelane::bench
