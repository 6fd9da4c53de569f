#include <gmock/gmock.h>

#include <atomic>
#include <utility>

#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SuitesGpuTest : public CudaTest {};
class BrokenSuitesGpuTest : public StandInTest {};

TEST_F(BrokenSuitesGpuTest, TooLittleMemoryLeavesTheCpusPart) {
  const Session session = gpu_session();
  stand_in::set_memory(20'000);
  const Result result = run("convert", session);
  EXPECT_THAT(result.problems, ElementsAre(HasSubstr("ask for less with --size")));
  EXPECT_EQ(count(result, "GPU, sliced"), 0);
  expect_measured_and_right(result, "CPU, SIMD");
  EXPECT_THAT(run("overlap", session).problems,
              ElementsAre(HasSubstr("ask for less with --bytes")));
  const std::vector<std::string> of_stage = run("stage", session).problems;
  EXPECT_THAT(of_stage, Not(IsEmpty()));
  EXPECT_THAT(of_stage, Each(HasSubstr("; ask for less with --size")));
  stand_in::set_memory(5'000);
  EXPECT_THAT(run("reduce", session).problems,
              AllOf(SizeIs(2), Each(HasSubstr("; ask for less with --size"))));
  const Result peers = run("peers", session);
  EXPECT_THAT(peers.problems, ElementsAre(HasSubstr("; ask for less with --size")));
  expect_measured_and_right(peers, "framelane, one core");
}

TEST_F(SuitesGpuTest, WhatNeedsMoreOfTheHostsMemoryThanThereIsIsNotBegun) {
  Session session = gpu_session();
  session.memory = session.bytes;
  for (const char* name : {"overlap", "kernels", "vecadd"}) {
    const Result result = run(name, session);
    EXPECT_THAT(result.problems, ElementsAre(AllOf(HasSubstr("needs "), HasSubstr(" --bytes"))));
    EXPECT_THAT(result.rows, IsEmpty()) << name;
  }
}

TEST_F(BrokenSuitesGpuTest, WhatIsNoWantOfMemoryIsNotCalledSo) {
  const Session session = gpu_session();
  for (const auto& [suite, on_cpu] :
       {std::pair("reduce", "CPU, one after the other"), std::pair("vecadd", "CPU, one core")}) {
    stand_in::fail_nth_call("cudaMallocAsync", 1, cudaErrorLaunchFailure);
    const Result result = run(suite, session);
    EXPECT_THAT(result.problems, ElementsAre(AllOf(HasSubstr("the GPU's part: cudaMallocAsync: "),
                                                   Not(HasSubstr("ask for less")))));
    expect_measured_and_right(result, on_cpu);
  }
}

TEST_F(SuitesGpuTest, AStopEndsASuiteEarly) {
  const std::atomic<int> stop{2};
  Session session = gpu_session();
  session.stop = &stop;
  for (const Suite& suite : suites()) {
    const Result result = run_suite(suite, session);
    EXPECT_TRUE(result.interrupted) << suite.name;
    EXPECT_THAT(result.problems, IsEmpty()) << suite.name;
    EXPECT_EQ(result.measured(result.rows.at(0).name), nullptr) << suite.name;
  }
}

TEST_F(BrokenSuitesGpuTest, MemoryThatCannotBeLockedIsAProblemOfTheGpusPart) {
  const Session session = gpu_session();
  stand_in::fail_nth_call("cudaHostRegister", 1, cudaErrorMemoryAllocation);
  const Result peers = run("peers", session);
  EXPECT_THAT(peers.problems,
              ElementsAre(AllOf(HasSubstr("the GPU's part: "), HasSubstr("less with --size"))));
  expect_measured_and_right(peers, "framelane, one core");
  for (const char* name : {"overlap", "kernels"}) {
    stand_in::fail_nth_call("cudaHostRegister", 1, cudaErrorMemoryAllocation);
    EXPECT_THAT(run(name, session).problems,
                ElementsAre(AllOf(HasSubstr("the GPU's part: "), HasSubstr("less with --bytes"))))
        << name;
  }
}

TEST_F(BrokenSuitesGpuTest, PinnedMemoryIsPinned) {
  // Pageable memory is taken where that is what is measured, and nowhere else.
  const Session session = gpu_session();
  run("convert", session);
  run("vecadd", session);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
  run("overlap", session);
  EXPECT_GT(stand_in::pageable_copies(), 0);
}

}  // namespace
}  // namespace framelane::bench
