// How jobs share a GPU's streams, memory and clock. Only the stand-in runtime can show it.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {
namespace {

using CudaLaneTest = CudaStageFixture<StandInTest>;

TEST_F(CudaLaneTest, LanesOverlap) {
  Jobs jobs(bgra_to_two(), 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold(kernel_stream());
  stand_in::hold(download_stream());
  submit(jobs);
  // The second job is copied up before the first is converted, and converted before the first is
  // copied down.
  EXPECT_TRUE(comes_true([] { return cudaStreamQuery(upload_stream()) == cudaSuccess; }));
  stand_in::release(kernel_stream());
  EXPECT_TRUE(comes_true([] { return cudaStreamQuery(kernel_stream()) == cudaSuccess; }));
  EXPECT_FALSE(jobs[0].converted);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaLaneTest, ALaneHasTwoJobsOnTheGpu) {
  Jobs jobs(bgra_to_two(), 8);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  // Each lane has four jobs, of which two are on the GPU: one copy up each, and two down.
  EXPECT_EQ(copies(), 2 * 2 * (1 + 1 + 1));
  EXPECT_EQ(converting(), 8u);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaLaneTest, TheSecondJobOfALaneWaitsForTheFirstsMemory) {
  Jobs jobs(bgra_to_two(), 3);  // the first and the third are in the same lane
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold(kernel_stream());
  stand_in::hold(download_stream());
  submit(jobs);
  EXPECT_EQ(copies(), 3 * (1 + 1 + 1));
  // The third is not copied up before the first is converted, and not converted before the results
  // of the first are copied down.
  const auto is_late = [&] {
    const Deadline deadline = std::chrono::steady_clock::now() + 20ms;
    return stage_->wait(jobs[0], {}, deadline) == Stage::Wait::kLate;
  };
  EXPECT_TRUE(is_late() && cudaStreamQuery(upload_stream()) == cudaErrorNotReady);
  stand_in::release(kernel_stream());
  EXPECT_TRUE(comes_true([] { return cudaStreamQuery(upload_stream()) == cudaSuccess; }));
  EXPECT_TRUE(is_late() && cudaStreamQuery(kernel_stream()) == cudaErrorNotReady);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaLaneTest, AFrameIsSlicedWhereNoOtherUploadIsBeforeIt) {
  make_stage(4);
  Jobs jobs({conversion_of(PixelFormat::kBgra, PixelFormat::kNv12)}, 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  ASSERT_TRUE(comes_true([] { return cudaStreamQuery(upload_stream()) == cudaSuccess; }));
  stand_in::hold(upload_stream());
  stage_->submit(jobs[0]);
  EXPECT_EQ(copies(), 4 * (1 + 2));
  stage_->submit(jobs[1]);
  EXPECT_EQ(copies(), 4 * (1 + 2) + 1 + 1);
  stand_in::release();
  wait(jobs);
  EXPECT_EQ(stats_.steps[index_of(StageStep::kD2h)].snapshot().count, 2u);
}

/// The third job, which is in the first one's lane, also waits for the first one.
TEST_F(CudaLaneTest, TimesAreOfTheWorkAndNotOfTheWaitForIt) {
  struct Case {
    const char* name;
    cudaStream_t held;
    std::vector<StageStep> steps;
  };
  const Case cases[] = {
      {"uploads", upload_stream(), {StageStep::kH2d, StageStep::kKernel, StageStep::kD2h}},
      {"conversions", kernel_stream(), {StageStep::kH2d, StageStep::kKernel, StageStep::kD2h}},
      // Downloads are not checked here: without another before it, one begins when its conversion
      // ends.
      {"downloads", download_stream(), {StageStep::kH2d, StageStep::kKernel}}};
  const auto seconds = [&](StageStep step) {
    return stats_.steps[index_of(step)].snapshot().sum_seconds;
  };
  for (const auto& [name, held, steps] : cases) {
    Jobs jobs({conversion_of(PixelFormat::kBgra, PixelFormat::kNv12)}, 3);
    jobs.use(stage_->prepare(jobs.conversions()));
    std::vector<double> before;
    for (const StageStep step : steps) before.push_back(seconds(step));
    stand_in::hold(held);
    submit(jobs);
    const auto from = std::chrono::steady_clock::now();
    EXPECT_EQ(stage_->wait(jobs[0], {}, from + 500ms), Stage::Wait::kLate);
    const std::chrono::duration<double> held_for = std::chrono::steady_clock::now() - from;
    stand_in::release();
    wait(jobs);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_LT(seconds(steps[i]) - before[i], held_for.count() / 2)
          << kStageStepNames[index_of(steps[i])] << " while " << name << " are held";
    }
  }
}

TEST_F(CudaLaneTest, TheJobsOfAllFeedsQueueInTheSameStreams) {
  const std::size_t streams = stand_in::streams().size();
  FeedStats other_stats("yard", {{"a"}, {"b"}}, {}, 1);
  const std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  Jobs jobs(bgra_to_two(), 1);
  Jobs other_jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  other_jobs.use(other->prepare(other_jobs.conversions()));
  EXPECT_EQ(stand_in::streams().size(), streams);
  stand_in::hold(upload_stream());
  stand_in::hold(kernel_stream());
  stand_in::hold(download_stream());
  submit(jobs);
  other->submit(other_jobs[0]);
  for (const cudaStream_t held : {upload_stream(), kernel_stream()}) {
    EXPECT_EQ(other->wait(other_jobs[0], {}, std::chrono::steady_clock::now() + 20ms),
              Stage::Wait::kLate);
    EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
    stand_in::release(held);
    EXPECT_TRUE(comes_true([held] { return cudaStreamQuery(held) == cudaSuccess; }));
  }
  EXPECT_EQ(cudaStreamQuery(download_stream()), cudaErrorNotReady);
  stand_in::release();
  wait(jobs);
  ASSERT_EQ(other->wait(other_jobs[0], {}, soon()), Stage::Wait::kReady);
  other_jobs.expect_exact(0);
}

TEST_F(CudaLaneTest, AFrameOnTheGpuWaitsForItsDecoderAndIsNotCopiedUp) {
  Jobs jobs(nv12_to_two(), 4);
  stand_in::hold(device_->context()->decode_stream().get());
  jobs.put_on(device_->context());
  const int before = copies();
  jobs.use(stage_->prepare(jobs.conversions(), jobs.memory()));
  submit(jobs);
  // Copies down only, for two jobs in each of the two lanes: two planes that lie apart, and one
  // image in one piece.
  EXPECT_EQ(copies() - before, 2 * 2 * (2 + 1));
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 20ms), Stage::Wait::kLate);
  EXPECT_EQ(ready(), 0u);
  stand_in::release();
  wait(jobs);
  EXPECT_EQ(stand_in::premature_copies(), 0);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
}

TEST_F(CudaLaneTest, FramesOnTheGpuAreUsedWhenTheirTargetsMemoryIsThere) {
  Jobs jobs(nv12_to_two(), 2);
  stand_in::hold(memory_stream());
  jobs.use(stage_->prepare(jobs.conversions(), FrameMemory::kDevice));
  jobs.put_on(device_->context());
  submit(jobs);
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 20ms), Stage::Wait::kLate);
  stand_in::release();
  wait(jobs);
  EXPECT_EQ(stand_in::premature_copies(), 0);
}

TEST_F(CudaLaneTest, FrameMemoryIsRegisteredAndCopiesAreAsynchronous) {
  Jobs jobs(bgra_to_two(), 6);
  run(jobs);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
}

TEST_F(CudaLaneTest, NothingIsAllocatedOnceAFeedRuns) {
  Jobs jobs(bgra_to_two(), 12);
  jobs.use(stage_->prepare(jobs.conversions()));
  const stand_in::Live before = stand_in::live();
  const int calls = stand_in::calls("cudaMallocAsync") + stand_in::calls("cudaMalloc") +
                    stand_in::calls("cudaEventCreateWithFlags");
  submit(jobs);
  wait(jobs);
  EXPECT_EQ(stand_in::live(), before);
  EXPECT_EQ(stand_in::calls("cudaMallocAsync") + stand_in::calls("cudaMalloc") +
                stand_in::calls("cudaEventCreateWithFlags"),
            calls);
}

TEST_F(CudaLaneTest, PrepareDoesNotWaitForTheGpuAndNothingIsUsedBeforeItIsThere) {
  const cudaStream_t memory = memory_stream();
  Jobs jobs(bgra_to_two(), 4);
  stand_in::hold(memory);
  auto prepared =
      std::async(std::launch::async, [&] { return stage_->prepare(jobs.conversions()); });
  EXPECT_EQ(prepared.wait_for(20s), std::future_status::ready);
  if (prepared.wait_for(0s) != std::future_status::ready) stand_in::release();
  jobs.use(prepared.get());
  submit(jobs);
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 20ms), Stage::Wait::kLate);
  stand_in::release();
  wait(jobs);
  EXPECT_EQ(stand_in::premature_copies(), 0);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaLaneTest, AClockThatGetsNoAnswerHoldsUpNoJob) {
  const cudaStream_t clock = clock_stream();
  Jobs jobs(bgra_to_two(), 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold(clock);
  const auto again = [&] {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].converted = false;
      stage_->submit(jobs[i]);
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (stage_->wait(jobs[i], {}, soon()) != Stage::Wait::kReady) return false;
    }
    return true;
  };
  bool all = true;
  while (all && cudaStreamQuery(clock) == cudaSuccess)
    all = again();  // until the clock records a mark
  EXPECT_TRUE(all && again() && again());
  EXPECT_FALSE(device_->lost());
  stand_in::release();
}

/// When the first job has ended, waits until the jobs behind it are done too, and then lets the
/// clock's mark come.
class LateMark final : public LaneOwner {
 public:
  std::atomic<int> through{0};

 private:
  void completed(CudaLane&, FrameJob&, bool) noexcept override {
    if (through == 0) {
      EXPECT_TRUE(comes_true([] { return cudaStreamQuery(download_stream()) == cudaSuccess; }));
      stand_in::release(clock_stream());
      EXPECT_TRUE(comes_true([] { return cudaStreamQuery(clock_stream()) == cudaSuccess; }));
    }
    ++through;
  }
};

TEST_F(CudaLaneTest, AMarkIsNotTimedByAJobThatWasDoneBeforeItCame) {
  Jobs jobs(bgra_to_two(), 3);
  jobs.use(stage_->prepare(jobs.conversions()));
  const auto again = [&] {
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].converted = false;
    submit(jobs);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_EQ(stage_->wait(jobs[i], {}, soon()), Stage::Wait::kReady);
    }
  };
  stand_in::hold(clock_stream());
  while (cudaStreamQuery(clock_stream()) == cudaSuccess && !HasFatalFailure()) again();
  // All three are done, then the mark comes, then the second and the third are booked.
  LateMark owner;
  LaneOwner& as_owner = owner;
  stand_in::hold(download_stream());
  std::vector<std::shared_ptr<CudaLane>> lanes;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    lanes.push_back(std::make_shared<CudaLane>(device_->context(), as_owner, stats_, i));
    lanes[i]->start(jobs[i]);
    lanes[i]->carry(jobs[i]);
    device_->completion().watch(lanes[i]);
  }
  stand_in::release(download_stream());
  ASSERT_TRUE(comes_true([&] { return owner.through == 3; }));
  for (int i = 0; i < 3; ++i) again();
  EXPECT_EQ(stand_in::backward_times(), 0);
}

TEST_F(CudaLaneTest, AnyThreadMayBeTheLastToHoldALaneOrADevice) {
  stage_.reset();
  device_.reset();
  stand_in::set_device_count(2);
  device_ = CudaDevice::open(1, cpu_);
  make_stage({});
  std::thread([&] { stage_.reset(); }).join();
  std::thread([&] { device_.reset(); }).join();
  EXPECT_EQ(stand_in::misplaced_calls(), 0);
  EXPECT_EQ(stand_in::live(), stand_in::Live{});
}

}  // namespace
}  // namespace framelane::testing
