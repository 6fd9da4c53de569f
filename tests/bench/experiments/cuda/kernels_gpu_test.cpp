#include <gmock/gmock.h>

#include "bench/harness/gpu_part.hpp"
#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KernelsGpuTest : public CudaTest {};
class BrokenKernelsGpuTest : public StandInTest {};

TEST_F(KernelsGpuTest, KernelsAreRightInEveryWay) {
  const Result result = run("kernels", gpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "kernels at once"), 22);
  EXPECT_EQ(result.rows.size(), 22u + 2 * 5);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.samples.size(), 1u) << row.name;
    EXPECT_EQ(row.checked, Checked::kRight) << row.name;
  }
  EXPECT_THAT(result.verdict, Contains(HasSubstr("kernel and copy up: at once they take ")));
  // The stand-in has one multiprocessor, with room for 2048 threads.
  EXPECT_THAT(result.verdict,
              Contains(AllOf(HasSubstr("2048 threads, 32 connections, in blocks of 128: up to "),
                             EndsWith(stand_in::present() ? "; one kernel alone gives a "
                                                            "multiprocessor 16 blocks, and all of "
                                                            "their threads are resident up to 1"
                                                          : ""))));
  EXPECT_EQ(result.charts.size(), 1u);
}

TEST(KernelLengthTest, TheLastIsLaunchedLongBeforeTheFirstEnds) {
  EXPECT_DOUBLE_EQ(kernel_length(0.005, 128, 10), 20 * 128 * 0.005);
  EXPECT_DOUBLE_EQ(kernel_length(0.000'1, 128, 10), 2);  // longer than a clock's steps
}

TEST(KernelLengthTest, AShortTurnBoundsIt) {
  EXPECT_DOUBLE_EQ(kernel_length(0.005, 128, 0.016), 4);
  EXPECT_DOUBLE_EQ(kernel_length(0.005, 128, 0), 2);
}

/// Says what was asked of it.
class FakeProcess : public OtherProcess {
 public:
  explicit FakeProcess(int& rounds) : rounds_(rounds) {}
  void round() override { ++rounds_; }
  Result result() override {
    Result other;
    other.rows.push_back({.name = "kernels at once",
                          .parameters = {{"threads", std::int64_t{1024}},
                                         {"connections", std::int64_t{8}},
                                         {"kernels", std::int64_t{1}}},
                          .samples = {1}});
    other.rows.push_back({.name = "kernel and host", .samples = {1}});
    other.problems = {"something is wrong"};
    return other;
  }

 private:
  int& rounds_;
};

TEST_F(KernelsGpuTest, KernelsTakeTurnsWithAnotherProcessThatHasFewConnections) {
  Session session = gpu_session();
  session.rounds = 2;
  session.seconds = 0.054;
  std::string asked;
  double seconds = 0;
  int rounds = 0;
  session.other_process = [&](const char* suite, double its_seconds,
                              const std::vector<std::string>& variables) {
    asked = suite;
    seconds = its_seconds;
    for (const std::string& variable : variables) asked += ' ' + variable;
    return std::make_unique<FakeProcess>(rounds);
  };
  const Result result = run("kernels", session);
  EXPECT_THAT(asked, ::testing::MatchesRegex("kernels CUDA_DEVICE_MAX_CONNECTIONS=8 "
                                             "FRAMELANE_BENCH_KERNEL_STEPS=[1-9][0-9]*"));
  EXPECT_NEAR(seconds, 0.022, 1e-9);  // 22 of the 54 contenders are its
  EXPECT_EQ(rounds, 1 + 2);
  EXPECT_EQ(count(result, "kernels at once"), 23);
  EXPECT_THAT(result.verdict, Contains(HasSubstr("1024 threads, 8 connections, in blocks of ")));
  EXPECT_THAT(result.left_out, IsEmpty());
  EXPECT_THAT(result.problems, ElementsAre("with 8 connections: something is wrong"));
}

TEST_F(KernelsGpuTest, WithANumberOfConnectionsThatWasSetTheOthersAreLeftOut) {
  const auto left_out_with = [](const char* connections) {
    const Session session = gpu_session();
    setenv(kCudaConnections, connections, 1);
    const Result result = run("kernels", session);
    setenv(kCudaConnections, "32", 1);
    EXPECT_THAT(result.problems, IsEmpty());
    EXPECT_EQ(count(result, "kernels at once"), 22);
    return result.left_out;
  };
  EXPECT_THAT(left_out_with("32"), ElementsAre(HasSubstr("8 connections: ")));
  EXPECT_THAT(left_out_with("8"), ElementsAre(HasSubstr("32 connections: ")));
  EXPECT_THAT(left_out_with("16"),
              ElementsAre(HasSubstr("8 connections: CUDA_DEVICE_MAX_CONNECTIONS is 16 here"),
                          HasSubstr("32 connections: CUDA_DEVICE_MAX_CONNECTIONS is 16 here")));
}

TEST_F(KernelsGpuTest, TheProcessThatIsToldHowLongKernelsAreMeasuresThemAlone) {
  const Session session = gpu_session();
  setenv("FRAMELANE_BENCH_KERNEL_STEPS", "100", 1);
  const Result result = run("kernels", session);
  unsetenv("FRAMELANE_BENCH_KERNEL_STEPS");
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "kernels at once"), 22);
  EXPECT_EQ(result.rows.size(), 22u);
}

TEST_F(BrokenKernelsGpuTest, AWrongByteFailsKernels) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("kernels", session);
  // The copy of the results is spoilt at its end, where only the largest contenders look.
  EXPECT_THAT(result.problems,
              Contains(HasSubstr(
                  "wrong result of kernels at once, threads 2048, connections 32, kernels 128: ")));
  EXPECT_THAT(result.problems, Contains(HasSubstr("wrong result of kernel and copy up, ")));
  EXPECT_THAT(result.problems, Contains(HasSubstr("wrong result of copy up and host, ")));
  EXPECT_THAT(result.problems, Contains(HasSubstr("wrong result of copy up and copy down, ")));
}

}  // namespace
}  // namespace framelane::bench
