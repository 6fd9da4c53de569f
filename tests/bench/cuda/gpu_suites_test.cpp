#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "bench/stage_ceilings.hpp"
#include "bench/stage_feed.hpp"
#include "bench/suites/convert_gpu.hpp"
#include "bench/suites/segmented_add.hpp"
#include "bench/suites/suite.hpp"
#include "bench/suites/sum_kernels.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"
#include "pipeline/stage/gpu.hpp"
#include "tests/cuda_runtime/fixture.hpp"

namespace framelane::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::shared_ptr<Device>& cpu() {
  static const std::shared_ptr<Device> device = std::make_shared<CpuDevice>(1);
  return device;
}

Session gpu_session() {
  setenv(kCudaConnections, "32", 1);  // whatever the tests were started with
  Session session;
  session.rounds = 1;
  session.seconds = 0;
  session.width = 37;  // no multiple of anything, and fewer rows than streams
  session.height = 23;
  session.bytes = 300'000;
  session.cpu = cpu();
  GpuResult gpu = open_gpu(0, cpu());
  EXPECT_NE(gpu.device, nullptr) << gpu.why;
  session.gpu = std::move(gpu.device);
  if (stand_in::present()) session.npp = FRAMELANE_FAKE_NPP;
  return session;
}

Result run(const char* suite, const Session& session) {
  return run_suite(*find_suite(suite), session);
}

int count(const Result& result, std::string_view name) {
  return static_cast<int>(
      std::ranges::count_if(result.rows, [&](const Row& row) { return row.is(name); }));
}

void expect_measured_and_right(const Result& result, std::string_view name) {
  EXPECT_GT(count(result, name), 0) << name;
  for (const Row& row : result.rows) {
    if (!row.is(name)) continue;
    EXPECT_EQ(row.samples.size(), 1u) << name;
    EXPECT_EQ(row.checked, Checked::kRight) << name;
  }
}

class GpuSuitesTest : public CudaTest {};
class BrokenGpuSuitesTest : public StandInTest {};

TEST_F(GpuSuitesTest, ConvertIsRightInEveryWay) {
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

TEST_F(GpuSuitesTest, ConvertTakesFramesWithMoreRowsThanStreams) {
  Session session = gpu_session();
  session.width = 128;
  session.height = 67;
  EXPECT_THAT(run("convert", session).problems, IsEmpty());
}

TEST_F(BrokenGpuSuitesTest, AWrongByteFailsConvert) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("convert", session);
  EXPECT_EQ(result.problems.size(), 22u);  // every way over the GPU
  EXPECT_THAT(
      result.problems,
      Contains(HasSubstr("wrong result of GPU, sliced, formula exact, streams 2: frame 1, row ")));
  expect_measured_and_right(result, "CPU, SIMD");
}

TEST_F(BrokenGpuSuitesTest, WithoutTheirKernelsNoWayOfConvertIsRight) {
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

TEST_F(BrokenGpuSuitesTest, ACopyOrAKernelThatIsMissingOnceInATurnFailsConvert) {
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

TEST_F(BrokenGpuSuitesTest, TooLittleMemoryLeavesTheCpusPart) {
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

TEST_F(GpuSuitesTest, WhatNeedsMoreOfTheHostsMemoryThanThereIsIsNotBegun) {
  Session session = gpu_session();
  session.memory = session.bytes;
  for (const char* name : {"overlap", "kernels", "vecadd"}) {
    const Result result = run(name, session);
    EXPECT_THAT(result.problems, ElementsAre(AllOf(HasSubstr("needs "), HasSubstr(" --bytes"))));
    EXPECT_THAT(result.rows, IsEmpty()) << name;
  }
}

TEST_F(BrokenGpuSuitesTest, WhatIsNoWantOfMemoryIsNotCalledSo) {
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

TEST_F(BrokenGpuSuitesTest, TooManyFeedsForAGpuLeaveTheFewer) {
  const Session session = gpu_session();
  const Conversion convert =
      conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", session.width, session.height});
  stand_in::set_memory(56 * plan_bytes({&convert, 1}, FrameMemory::kHost, kLanes));
  const Result result = run("stage", session);
  EXPECT_THAT(result.problems,
              ElementsAre(AllOf(HasSubstr("stage, size 37x23, formats bgra to nv12, feeds 64, "),
                                HasSubstr("; ask for less with --size"))));
  EXPECT_EQ(result.measured("stage", {{"feeds", std::int64_t{64}}}), nullptr);
  EXPECT_NE(result.measured("stage", {{"feeds", std::int64_t{32}}}), nullptr);
}

TEST_F(BrokenGpuSuitesTest, ACallThatFailsIsAProblemAndKeepsWhatWasMeasured) {
  const Session session = gpu_session();
  stand_in::fail_nth_call("cudaEventSynchronize", 3, cudaErrorLaunchFailure);
  const Result result = run("convert", session);
  EXPECT_THAT(result.problems, ElementsAre(HasSubstr("cudaEventSynchronize: ")));
  EXPECT_NE(result.measured("upload alone"), nullptr);
}

TEST_F(GpuSuitesTest, AStopEndsASuiteEarly) {
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

TEST_F(GpuSuitesTest, VecaddIsRightInEveryWay) {
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

TEST_F(BrokenGpuSuitesTest, AWrongByteFailsVecadd) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("vecadd", session);
  EXPECT_THAT(result.problems,
              ElementsAre(HasSubstr("wrong result of 1 elements in segments of ")));
}

TEST_F(BrokenGpuSuitesTest, AWrongByteOfALongVectorFailsVecaddToo) {
  const Session session = gpu_session();
  stand_in::spoil_downloads(1000);  // bytes: none of the lengths that are tried before
  const Result result = run("vecadd", session);
  EXPECT_EQ(result.problems.size(), 5u);  // every way over the GPU
  EXPECT_THAT(result.problems, Contains(HasSubstr("wrong result of GPU, in one piece: byte ")));
  expect_measured_and_right(result, "CPU, one core");
}

TEST_F(GpuSuitesTest, SegmentsAddVectorsOfEveryLength) {
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
        for (std::size_t length = 0; length<most; length += segment> 100 ? 13 : 1) {
          std::vector<float> sum(kMost, kUntouched);
          adder.run(order, a.data(), b.data(), sum.data(), length);
          for (std::size_t i = 0; i < kMost; ++i) {
            ASSERT_EQ(sum[i], i < length ? a[i] + b[i] : kUntouched)
                << "element " << i << " of " << length << " in segments of " << segment << " over "
                << streams << " streams, " << name_of(order);
          }
        }
      }
    }
  }
}

TEST_F(GpuSuitesTest, KernelsAreRightInEveryWay) {
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

TEST_F(GpuSuitesTest, KernelsTakeTurnsWithAnotherProcessThatHasFewConnections) {
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

TEST_F(GpuSuitesTest, WithANumberOfConnectionsThatWasSetTheOthersAreLeftOut) {
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

TEST_F(GpuSuitesTest, TheProcessThatIsToldHowLongKernelsAreMeasuresThemAlone) {
  const Session session = gpu_session();
  setenv("FRAMELANE_BENCH_KERNEL_STEPS", "100", 1);
  const Result result = run("kernels", session);
  unsetenv("FRAMELANE_BENCH_KERNEL_STEPS");
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "kernels at once"), 22);
  EXPECT_EQ(result.rows.size(), 22u);
}

TEST_F(BrokenGpuSuitesTest, AWrongByteFailsKernels) {
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

TEST_F(GpuSuitesTest, StageIsRightInEveryWay) {
  Session session = gpu_session();
  session.height = 67;  // to be cut in slices
  const Result result = run("stage", session);
  EXPECT_THAT(result.problems, IsEmpty());
  // The defaults of four formats; of the first, 5 other numbers of lanes, 4 of places, 5 of slices
  // with either of two rings, 6 of feeds.
  EXPECT_EQ(count(result, "stage"), 4 + 5 + 4 + 2 * 5 + 6);
  EXPECT_EQ(count(result, "uploads alone"), 4);
  EXPECT_EQ(count(result, "uploads beside downloads"), 4);
  expect_measured_and_right(result, "stage");
  EXPECT_EQ(count(result, "stage, luma counted"), 1);
  expect_measured_and_right(result, "stage, luma counted");
  for (const char* name : {"default stream, pageable memory", "default stream, pinned memory",
                           "eight streams that slice one frame"}) {
    EXPECT_EQ(count(result, name), 1);
    expect_measured_and_right(result, name);
    EXPECT_THAT(result.verdict, Contains(HasSubstr(std::string(" times as fast as ") + name)));
  }
  constexpr const char* kCeilings[] = {"uploads alone", "uploads beside downloads",
                                       "downloads alone", "kernels alone"};
  for (std::size_t i = 0; i < std::size(kCeilings); ++i) {
    EXPECT_EQ(result.rows[i].name, kCeilings[i]);  // they are first
  }
  EXPECT_EQ(count(result, "downloads alone"), 1);
  EXPECT_EQ(count(result, "kernels alone"), 1);
  EXPECT_THAT(result.verdict, Contains(HasSubstr(": a frame alone is back within ")));
  for (const Row& row : result.rows) {
    if (!row.is("stage")) continue;
    for (const char* figure : {"p50", "p99", "CPU/1000", "of uploads", "of both ways"}) {
      EXPECT_GT(row.median_of(figure).value_or(0), 0) << figure;
    }
  }
  EXPECT_THAT(result.left_out, IsEmpty());
  EXPECT_THAT(result.verdict,
              Contains(HasSubstr("37x67 bgra to nv12, one frame at a time: slices")));
  EXPECT_EQ(result.charts.size(), 5u);
  EXPECT_EQ(result.charts[0].levels.size(), 2u);
}

TEST_F(BrokenGpuSuitesTest, AWrongByteFailsStage) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("stage", session);
  EXPECT_EQ(result.problems.size(), 30u + 3);  // every setup, and the usual ways
  EXPECT_THAT(result.problems,
              Contains(HasSubstr("wrong result of eight streams that slice one frame, ")));
  EXPECT_THAT(
      result.problems,
      Contains(HasSubstr("wrong result of stage, size 37x23, formats bgra to nv12, feeds 1, "
                         "lanes 3, ring 8, slices auto: feed 0, frame 1, plane ")));
}

TEST_F(GpuSuitesTest, AStopEndsTheTurnOfACeiling) {
  const Session session = gpu_session();
  const Conversion convert =
      conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", session.width, session.height});
  FramePool pool;
  const std::vector<PooledImage> frames =
      make_frames(pool, convert.source, {"", session.width, session.height}, 2);
  const std::atomic<int> stop{2};
  const StageCeilings ceilings(context_of(session), convert, frames, &stop);
  EXPECT_GT(ceilings.duplex(3600), 0);
}

TEST_F(BrokenGpuSuitesTest, AStageThatGoesOnOnTheCpuIsNotTakenForTheGpus) {
  const Session session = gpu_session();
  stand_in::fail_nth_call("cudaStreamWaitEvent", 5);
  EXPECT_THAT(run("stage", session).problems, ElementsAre(HasSubstr("it went on on cpu")));
}

TEST_F(BrokenGpuSuitesTest, AGpuThatIsLostFailsStage) {
  const Session session = gpu_session();
  stand_in::lose_device_at_call(400);
  EXPECT_THAT(run("stage", session).problems, Contains("cuda:0 was lost"));
}

TEST_F(GpuSuitesTest, PeersAreMeasuredAndOursIsRight) {
  const Session session = gpu_session();
  const Result result = run("peers", session);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "framelane, GPU"), 1);
  EXPECT_EQ(count(result, "copy within the GPU"), 1);
  EXPECT_EQ(count(result, "framelane, one core"), 10);
  expect_measured_and_right(result, "framelane, GPU");
  EXPECT_EQ(result.measured("framelane, GPU")->median_of("off"), 0);
  if (session.npp.empty()) return;  // a real GPU's may not be installed
  const Row* npp = result.measured("NPP");
  ASSERT_NE(npp, nullptr);
  EXPECT_GT(npp->median_of("off").value_or(0), 10);
  EXPECT_LE(npp->median_of("off by").value_or(0), 3);
  EXPECT_EQ(npp->checked, Checked::kNothing);
}

TEST_F(BrokenGpuSuitesTest, AWrongByteFailsPeers) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("peers", session);
  EXPECT_THAT(result.problems,
              ElementsAre(HasSubstr("wrong result of framelane, GPU, formats bgra to yuv420p, size "
                                    "37x23: plane 2, row 11, byte 18 is ")));
  expect_measured_and_right(result, "framelane, one core");
}

TEST_F(BrokenGpuSuitesTest, ANppThatFailsLeavesTheCpusPart) {
  const Session session = gpu_session();
  setenv("FRAMELANE_FAKE_NPP_STATUS", "-1000", 1);
  const Result result = run("peers", session);
  unsetenv("FRAMELANE_FAKE_NPP_STATUS");
  EXPECT_THAT(result.problems, ElementsAre("the GPU's part: NPP's status is -1000"));
  expect_measured_and_right(result, "framelane, one core");
}

TEST_F(BrokenGpuSuitesTest, MemoryThatCannotBeLockedIsAProblemOfTheGpusPart) {
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

TEST_F(BrokenGpuSuitesTest, WithoutNppTheOthersAreMeasured) {
  Session session = gpu_session();
  session.npp = "/nonexistent/libnppicc.so";
  const Result result = run("peers", session);
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_THAT(result.left_out, Contains("NPP: libnppicc is not installed here"));
  EXPECT_EQ(count(result, "NPP"), 0);
  expect_measured_and_right(result, "framelane, GPU");
}

TEST_F(GpuSuitesTest, ReduceIsRightInEveryWay) {
  const Result result = run("reduce", gpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(result.rows[0].name, "CPU, reading alone");  // ceilings are first
  EXPECT_EQ(result.rows[1].name, "GPU, empty kernels");
  // Four on the CPU, six with a launch for each sum and one with one for all, and empty kernels;
  // CUB and graphs are of the program alone. Conversions, two on the CPU and three on the GPU.
  EXPECT_EQ(result.rows.size(), 4u + 6 + 1 + 1 + 2 + 3);
  for (const Row& row : result.rows) {
    EXPECT_EQ(row.samples.size(), 1u) << row.name;
    EXPECT_EQ(row.checked, row.is("GPU, empty kernels") ? Checked::kNothing : Checked::kRight)
        << row.name;
  }
  EXPECT_THAT(result.verdict, Contains(HasSubstr("a launch for each sum: GPU, ")));
}

TEST_F(BrokenGpuSuitesTest, AWrongByteFailsReduce) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("reduce", session);
  EXPECT_EQ(result.problems.size(), 7u + 3);  // every way over the GPU
  EXPECT_THAT(result.problems, Contains(HasSubstr("wrong result of GPU, warp shuffles: sum 999 ")));
}

TEST_F(BrokenGpuSuitesTest, AWrongCountOfLumaFailsReduce) {
  Session session = gpu_session();
  session.width = 16;
  session.height = 8;
  stand_in::spoil_downloads(sizeof(LumaHistogram));  // the whole picture is smaller
  const Result result = run("reduce", session);
  const std::string why = ": its luma is counted wrongly";
  EXPECT_THAT(
      result.problems,
      AllOf(Contains("wrong result of GPU, BGRA to NV12 and luma in one kernel, size 16x8" + why),
            Contains("wrong result of GPU, BGRA to NV12, then luma, size 16x8" + why)));
  EXPECT_NE(result.measured("GPU, BGRA to NV12"), nullptr);
}

TEST_F(GpuSuitesTest, EveryWayAddsPicturesOfEveryLength) {
  const Session session = gpu_session();
  constexpr std::size_t kMost = 70'000;
  CudaContext& context = context_of(session);
  std::vector<float> values(kMost);
  for (std::size_t i = 0; i < kMost; ++i) values[i] = static_cast<float>(i * 7 % 61);
  const DeviceMemory memory(kMost * sizeof(float), context.memory_stream(), context.memory_bytes);
  const DeviceMemory sum_memory(sizeof(float), context.memory_stream(), context.memory_bytes);
  context.memory_stream().synchronize();
  const Streams streams(1);
  copy(memory.data(), values.data(), kMost * sizeof(float), cudaMemcpyHostToDevice,
       streams[0].get());
  auto* const sum = reinterpret_cast<float*>(sum_memory.data());
  for (const std::size_t count : {1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1023, 1025, 70'000}) {
    for (const SumWay way : kSumWays) {
      cuda::check(cudaMemsetAsync(sum, 0, sizeof(float), streams[0].get()), "cudaMemsetAsync");
      cuda::check(enqueue_sum(way, reinterpret_cast<const float*>(memory.data()), count, sum,
                              streams[0].get()),
                  "cudaLaunchKernel");
      float got = -1;
      copy(&got, sum, sizeof got, cudaMemcpyDeviceToHost, streams[0].get());
      streams.synchronize(1);
      float expected = 0;
      for (std::size_t i = 0; i < count; ++i) expected += values[i];
      EXPECT_EQ(got, expected) << name_of(way) << ", " << count;
    }
  }
}

TEST_F(GpuSuitesTest, OverlapIsRightInEveryWay) {
  const Result result = run("overlap", gpu_session());
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(count(result, "in turn"), 2);
  // Five chunks of 64 KiB, two of 256 KiB, and one in each of the larger sizes.
  EXPECT_EQ(count(result, "in chunks"), 2 * ((3 + 2 + 4) + (2 + 1)));
  for (const char* name : {"in turn", "in chunks"}) expect_measured_and_right(result, name);
  EXPECT_THAT(result.verdict, Contains(HasSubstr("the order of issue")));
  EXPECT_EQ(result.charts.size(), 4u);
}

TEST_F(GpuSuitesTest, OverlapIsRightOverManyStreamsAndWithLargeChunks) {
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

TEST_F(BrokenGpuSuitesTest, AWrongByteFailsOverlap) {
  const Session session = gpu_session();
  stand_in::spoil_downloads();
  const Result result = run("overlap", session);
  EXPECT_THAT(result.problems,
              Contains(HasSubstr("wrong result of in turn, memory pinned: byte ")));
  EXPECT_THAT(
      result.problems,
      Contains(HasSubstr("wrong result of in chunks, memory pageable, order breadth first")));
}

TEST_F(BrokenGpuSuitesTest, PinnedMemoryIsPinned) {
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
