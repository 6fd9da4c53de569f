#include "bench/harness/suite.hpp"

#include <gmock/gmock.h>

#include <utility>

#include "tests/bench/session.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(MemoryTest, WhatNeedsMoreThanThereIsIsNotBegun) {
  Session session = cpu_session();
  session.bytes = 400'000;
  session.memory = 4 * 37 * 23;
  for (const auto& [name, option] :
       {std::pair("convert", "--size"), std::pair("peers", "--size"), std::pair("stage", "--size"),
        std::pair("vecadd", "--bytes")}) {
    const Result result = run_suite(*find_suite(name), session);
    EXPECT_THAT(result.rows, IsEmpty()) << name;
    EXPECT_THAT(result.problems, Not(IsEmpty())) << name;
    EXPECT_THAT(
        result.problems,
        Each(AllOf(HasSubstr("needs "), EndsWith(std::string("; ask for less with ") + option))))
        << name;
  }
}

TEST(MemoryTest, ThreeQuartersMayBeTaken) {
  Session session = cpu_session();
  session.memory = std::size_t{4} << 20;
  EXPECT_NO_THROW(require_memory(session, 3 << 20, "--bytes"));
  EXPECT_THAT([&] { require_memory(session, (4 << 20) - 1, "--bytes"); },
              ::testing::ThrowsMessage<NoRoom>(
                  "needs 3 MiB of memory, and three quarters of what there is are 3; "
                  "ask for less with --bytes"));
}

TEST(GpuSuitesWithoutAGpuTest, TheySayThatTheyAreLeftOut) {
  for (const char* name : {"overlap", "kernels"}) {
    const Result result = run_suite(*find_suite(name), cpu_session());
    EXPECT_THAT(result.problems, IsEmpty()) << name;
    EXPECT_THAT(result.rows, IsEmpty()) << name;
    EXPECT_THAT(result.left_out, ElementsAre(HasSubstr("no GPU in this test"))) << name;
  }
}

}  // namespace
}  // namespace framelane::bench
