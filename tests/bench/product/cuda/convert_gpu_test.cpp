#include "bench/product/convert_gpu.hpp"

#include <gmock/gmock.h>

#include "tests/bench/gpu_suites.hpp"

namespace framelane::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConvertGpuTest : public CudaTest {};
class BrokenConvertGpuTest : public StandInTest {};

class GpuSuitesTest : public CudaTest {};
class BrokenGpuSuitesTest : public StandInTest {};

TEST_F(ConvertGpuTest, ConvertIsRightInEveryWay) {
  const Result result = run("convert", gpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "kernel alone"), 2);
  EXPECT_EQ(count(result, "GPU, default stream"), 2);
  EXPECT_EQ(count(result, "GPU, sliced"), 12);
  EXPECT_EQ(count(result, "GPU, whole frames"), 6);
  EXPECT_EQ(count(result, "CPU, scalar"), 2);
  EXPECT_EQ(count(result, "CPU, SIMD"), 2);
  for (const char* name : {"kernel alone", "GPU, default stream", "GPU, sliced",
                           "GPU, whole frames", "CPU, scalar", "CPU, SIMD"}) {
    expect_measured_and_right(result, name);
  }
  EXPECT_NE(result.measured("upload and download at once"), nullptr);
  EXPECT_EQ(result.charts.size(), 1u);
  EXPECT_EQ(result.published.size(), 4u);
}

TEST_F(ConvertGpuTest, ConvertTakesFramesWithMoreRowsThanStreams) {
  Session session = gpu_session();
  session.width = 128;
  session.height = 67;
  EXPECT_THAT(run("convert", session).problems, IsEmpty());
}

TEST_F(BrokenConvertGpuTest, AWrongByteFailsConvert) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("convert", session);
  EXPECT_EQ(result.problems.size(), 22u);  // every way over the GPU
  EXPECT_THAT(
      result.problems,
      Contains(HasSubstr("wrong result of GPU, sliced, formula exact, streams 2: frame 1, row ")));
  expect_measured_and_right(result, "CPU, SIMD");
}

TEST_F(BrokenConvertGpuTest, WithoutTheirKernelsNoWayOfConvertIsRight) {
  const Session session = gpu_session();
  // All but the first contender's: what that leaves on the GPU is nobody else's result.
  constexpr int kOfTheFirst = 4;
  stand_in::skip_calls("cudaLaunchKernel", kOfTheFirst + 1, 1'000'000);
  const Result result = run("convert", session);
  EXPECT_EQ(result.problems.size(), 22u);  // every way, the first contender in the second round
  for (const char* name : {"GPU, default stream", "GPU, sliced", "GPU, whole frames"}) {
    for (const Row& row : result.rows) {
      if (!row.is(name)) continue;
      EXPECT_EQ(row.checked, Checked::kWrong) << row.full_name();
      EXPECT_THAT(row.samples, IsEmpty()) << row.full_name() << ": wrong from the first turn on";
    }
  }
  expect_measured_and_right(result, "CPU, SIMD");
}

TEST_F(BrokenConvertGpuTest, ACopyOrAKernelThatIsMissingOnceInATurnFailsConvert) {
  const Session session = gpu_session();
  ConvertFrames frames(session.width, session.height, ConvertGpu::kFrames);
  ConvertGpu gpu(context_of(session), frames);
  const std::vector<Parameter> exact{{"formula", name_of(Formula::kExact)}};
  int tried = 0;
  for (const Contender& contender : gpu.contenders()) {
    const bool carries = contender.row.is(kDefaultStream, exact) ||
                         contender.row.is(kSliced, exact) || contender.row.is(kWholeFrames, exact);
    if (!carries) continue;
    const auto wrong_of_a_turn = [&contender] {
      contender.prepare();
      for (int work = 0; work < 2; ++work) contender.work();
      return contender.check();
    };
    for (const char* call : {"cudaMemcpyAsync", "cudaLaunchKernel"}) {
      const int before = stand_in::calls(call);
      ASSERT_EQ(wrong_of_a_turn(), "") << contender.row.full_name();
      const int calls = stand_in::calls(call) - before;
      for (int nth = 1; nth <= calls; ++nth, ++tried) {
        stand_in::skip_calls(call, nth);
        EXPECT_THAT(wrong_of_a_turn(), HasSubstr(", byte "))
            << contender.row.full_name() << ": without " << call << ' ' << nth << " of " << calls;
      }
    }
  }
  // Two copies and a kernel: twice on the default stream; of whole frames four times as many as are
  // in flight; and more of slices.
  EXPECT_GT(tried, 3 * (2 + 4 * (2 + 3 + 4)));
}

TEST_F(BrokenConvertGpuTest, ACallThatFailsIsAProblemAndKeepsWhatWasMeasured) {
  const Session session = gpu_session();
  stand_in::fail_nth_call("cudaEventSynchronize", 3, cudaErrorLaunchFailure);
  const Result result = run("convert", session);
  EXPECT_THAT(result.problems, ElementsAre(HasSubstr("cudaEventSynchronize: ")));
  EXPECT_NE(result.measured("upload alone"), nullptr);
}

}  // namespace
}  // namespace framelane::bench
