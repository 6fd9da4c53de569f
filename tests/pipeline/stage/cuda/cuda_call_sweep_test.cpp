// Whatever single CUDA call of a stage's life fails, its frames are exact or the failure is
// reported. Only the stand-in runtime can show it.
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {
namespace {

/// In parts, which run side by side: part N takes every kParts-th call.
class CudaCallSweepTest : public CudaStageFixture<StandInTest>,
                          public ::testing::WithParamInterface<int> {
 public:
  static constexpr int kParts = 4;
};
INSTANTIATE_TEST_SUITE_P(Part, CudaCallSweepTest, ::testing::Range(0, CudaCallSweepTest::kParts));

/// Small, because there are hundreds of lives. The smallest height that is cut in two is 34.
constexpr int kSmallWidth = 66;
constexpr int kSmallHeight = 35;

std::vector<Conversion> drawn_on_first(std::vector<Conversion> conversions) {
  conversions.front().overlaid = true;
  return conversions;
}

/// Does everything that can be done with a device, from opening it on. Returns what failed, "lost"
/// or "moved"; empty if the GPU did all jobs.
std::string whole_life(const std::shared_ptr<Device>& cpu) {
  FeedStats stats("gate", {{"a"}, {"b"}}, {}, 2);
  Jobs jobs(drawn_on_first(bgra_to_two(kSmallWidth, kSmallHeight)), 3);
  Jobs decoded(drawn_on_first(nv12_to_two(kSmallWidth, kSmallHeight)), 2);
  jobs.analyse();
  decoded.analyse();
  try {
    const std::shared_ptr<CudaDevice> device = CudaDevice::open(0, cpu);
    const std::unique_ptr<Stage> stage = device->make_stage(stats, 2);
    std::string why;
    stage->decode_context(why);
    const std::size_t decoded_count = stats.status().device == "cpu" ? 0 : decoded.size();
    if (decoded_count > 0) decoded.put_on(device->context());
    jobs.use(stage->prepare(jobs.conversions(), jobs.memory(), true));
    if (decoded_count > 0) {
      decoded.use(stage->prepare(decoded.conversions(), decoded.memory(), true));
    }
    // The second job finds no upload before it, so it is sliced.
    stage->submit(jobs[0]);
    EXPECT_EQ(stage->wait(jobs[0], {}, soon()), Stage::Wait::kReady);
    for (std::size_t i = 1; i < jobs.size(); ++i) stage->submit(jobs[i]);
    for (std::size_t i = 0; i < decoded_count; ++i) stage->submit(decoded[i]);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      EXPECT_EQ(stage->wait(jobs[i], {}, soon()), Stage::Wait::kReady);
      jobs.expect_exact(i);
    }
    for (std::size_t i = 0; i < decoded_count; ++i) {
      const Stage::Wait result = stage->wait(decoded[i], {}, soon());
      if (result == Stage::Wait::kReady) {
        decoded.expect_exact(i);
      } else {
        EXPECT_EQ(result, Stage::Wait::kDeviceLost);
        EXPECT_EQ(stats.status().device, "cpu");
      }
    }
    EXPECT_EQ((*stats.ring_jobs())[index_of(RingState::kConverting)], 0u);
    EXPECT_EQ((*stats.ring_jobs())[index_of(RingState::kReady)], jobs.size() + decoded_count);
    return device->lost() ? "lost" : stats.status().device == "cpu" ? "moved" : "";
  } catch (const CudaError& error) {
    return error.what();
  } catch (const FeedError& error) {
    return error.what();
  }
}

TEST_P(CudaCallSweepTest, EveryCallMayFailOnce) {
  stage_.reset();
  device_.reset();
  stand_in::reset();
  ASSERT_EQ(whole_life(cpu_), "");
  // Three frames with two conversions each, and two with one conversion and a count each. Each has
  // two overlays.
  EXPECT_GT(stand_in::calls("cudaLaunchKernel"), 3 * 4 + 2 * 4) << "none was sliced";
  std::map<std::string, int> calls;
  for (const std::string& function : stand_in::called_functions()) {
    calls[function] = stand_in::calls(function);
  }
  for (const auto& [function, count] : calls) {
    const bool allocates = function == "cudaMallocAsync" || function == "cudaHostRegister" ||
                           function == "cudaFuncGetAttributes";
    for (const cudaError_t error : {cudaErrorUnknown, cudaErrorMemoryAllocation}) {
      if (error == cudaErrorMemoryAllocation && !allocates) continue;
      for (int n = 1 + GetParam(); n <= count; n += kParts) {
        SCOPED_TRACE(function + ", call " + std::to_string(n) + ", " + cudaGetErrorName(error));
        stand_in::reset();
        stand_in::fail_nth_call(function, n, error);
        const auto began = std::chrono::steady_clock::now();
        const std::string outcome = whole_life(cpu_);
        // A life may make fewer calls than the first one. After a second the clock takes a mark: if
        // one of its calls fails, only times are lost.
        const bool failed = stand_in::calls(function) >= n;
        const bool marked = std::chrono::steady_clock::now() - began >= 1s;
        if (failed && !marked && !may_fail_unnoticed(function)) {
          EXPECT_NE(outcome, "");
        }
        // The next call succeeds, so the GPU is not lost.
        EXPECT_NE(outcome, "lost");
        EXPECT_EQ(stand_in::live(), stand_in::Live{});
        EXPECT_EQ(stand_in::overruns(), 0);
        EXPECT_EQ(stand_in::spinning_waits(), 0);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace framelane::testing
