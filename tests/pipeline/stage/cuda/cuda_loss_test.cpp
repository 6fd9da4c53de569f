// How a feed survives a GPU that fails: only the stand-in runtime can show it.
#include <gmock/gmock.h>

#include <future>
#include <map>
#include <semaphore>
#include <span>

#include "pipeline/encode/encode.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {
namespace {

using CudaLossTest = CudaStageFixture<StandInTest>;

std::vector<Conversion> bgra_to_two() {
  return {conversion_of(PixelFormat::kBgra, PixelFormat::kNv12),
          conversion_of(PixelFormat::kBgra, PixelFormat::kI444)};
}

// The device's streams, in the order in which it makes them.
cudaStream_t clock_stream() { return stand_in::streams().at(0); }
cudaStream_t upload_stream() { return stand_in::streams().at(1); }
cudaStream_t memory_stream() { return stand_in::streams().at(2); }
cudaStream_t download_stream() { return stand_in::streams().at(3); }
cudaStream_t kernel_stream() { return stand_in::streams().at(5); }

TEST_F(CudaLossTest, LanesOverlap) {
  Jobs jobs(bgra_to_two(), 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold(kernel_stream());
  stand_in::hold(download_stream());
  submit(jobs);
  // The second job comes up before the first is even converted, and is converted before that is
  // down.
  EXPECT_TRUE(comes([] { return cudaStreamQuery(upload_stream()) == cudaSuccess; }));
  stand_in::release(kernel_stream());
  EXPECT_TRUE(comes([] { return cudaStreamQuery(kernel_stream()) == cudaSuccess; }));
  EXPECT_FALSE(jobs[0].converted);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaLossTest, ALaneHasTwoJobsOnTheGpu) {
  Jobs jobs(bgra_to_two(), 8);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  // Of four jobs for each of the two lanes: each one is copied up once, and two results down.
  EXPECT_EQ(copies(), 2 * 2 * (1 + 1 + 1));
  EXPECT_EQ(converting(), 8u);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaLossTest, TheSecondJobOfALaneWaitsForTheFirstsMemory) {
  Jobs jobs(bgra_to_two(), 3);  // the first and the third have one lane
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold(kernel_stream());
  stand_in::hold(download_stream());
  submit(jobs);
  EXPECT_EQ(copies(), 3 * (1 + 1 + 1));
  // Not up before the first frame is converted, and not converted before its results are down.
  const auto is_late = [&] {
    const Deadline deadline = std::chrono::steady_clock::now() + 20ms;
    return stage_->wait(jobs[0], {}, deadline) == Stage::Wait::kLate;
  };
  EXPECT_TRUE(is_late() && cudaStreamQuery(upload_stream()) == cudaErrorNotReady);
  stand_in::release(kernel_stream());
  EXPECT_TRUE(comes([] { return cudaStreamQuery(upload_stream()) == cudaSuccess; }));
  EXPECT_TRUE(is_late() && cudaStreamQuery(kernel_stream()) == cudaErrorNotReady);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaLossTest, AFrameIsSlicedWhereNoOtherUploadIsBeforeIt) {
  make_stage(4);
  Jobs jobs({conversion_of(PixelFormat::kBgra, PixelFormat::kNv12)}, 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  ASSERT_TRUE(comes([] { return cudaStreamQuery(upload_stream()) == cudaSuccess; }));
  stand_in::hold(upload_stream());
  stage_->submit(jobs[0]);
  EXPECT_EQ(copies(), 4 * (1 + 2));
  stage_->submit(jobs[1]);
  EXPECT_EQ(copies(), 4 * (1 + 2) + 1 + 1);
  stand_in::release();
  wait(jobs);
  EXPECT_EQ(stats_.steps[index_of(StageStep::kD2h)].snapshot().count, 2u);
}

/// The third job, in the first one's lane, waits for that as well.
TEST_F(CudaLossTest, TimesAreOfTheWorkAndNotOfTheWaitForIt) {
  struct Case {
    const char* name;
    cudaStream_t held;
    std::vector<StageStep> steps;
  };
  const Case cases[] = {
      {"uploads", upload_stream(), {StageStep::kH2d, StageStep::kKernel, StageStep::kD2h}},
      {"conversions", kernel_stream(), {StageStep::kH2d, StageStep::kKernel, StageStep::kD2h}},
      // A copy back begins when its conversion ends, if no other is before it.
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

TEST_F(CudaLossTest, TheJobsOfAllFeedsQueueInTheSameStreams) {
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
    EXPECT_TRUE(comes([held] { return cudaStreamQuery(held) == cudaSuccess; }));
  }
  EXPECT_EQ(cudaStreamQuery(download_stream()), cudaErrorNotReady);
  stand_in::release();
  wait(jobs);
  ASSERT_EQ(other->wait(other_jobs[0], {}, soon()), Stage::Wait::kReady);
  other_jobs.expect_exact(0);
}

std::vector<Conversion> nv12_to_two() {
  Conversion same = conversion_of(PixelFormat::kNv12, PixelFormat::kNv12);
  same.target_color = same.source_color;
  return {same, conversion_of(PixelFormat::kNv12, PixelFormat::kI420)};
}

TEST_F(CudaLossTest, AFrameOnTheGpuWaitsForItsDecoderAndIsNotCopiedUp) {
  Jobs jobs(nv12_to_two(), 4);
  stand_in::hold(device_->context()->decode_stream().get());
  jobs.put_on(device_->context());
  const int before = copies();
  jobs.use(stage_->prepare(jobs.conversions(), jobs.memory()));
  submit(jobs);
  // Down, for two jobs in each of the two lanes: planes that lie apart, and an image in one piece.
  EXPECT_EQ(copies() - before, 2 * 2 * (2 + 1));
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 20ms), Stage::Wait::kLate);
  EXPECT_EQ(ready(), 0u);
  stand_in::release();
  wait(jobs);
  EXPECT_EQ(stand_in::premature_copies(), 0);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
}

TEST_F(CudaLossTest, FramesOnTheGpuAreUsedWhenTheirTargetsMemoryIsThere) {
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

TEST_F(CudaLossTest, AGpuTakesTheFramesWithItThatOnlyItHas) {
  Jobs decoded(nv12_to_two(), 6);
  Jobs uploaded(bgra_to_two(), 6);
  decoded.put_on(device_->context());
  decoded.use(stage_->prepare(decoded.conversions(), decoded.memory()));
  uploaded.use(stage_->prepare(uploaded.conversions()));
  stand_in::hold();
  submit(decoded);
  submit(uploaded);
  stand_in::lose_device();
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    EXPECT_EQ(stage_->wait(decoded[i], {}, soon()), Stage::Wait::kDeviceLost);
  }
  wait(uploaded);
  EXPECT_EQ(converting(), 0u);
  EXPECT_EQ(ready(), decoded.size() + uploaded.size());
  EXPECT_EQ(stats_.status().device, "cpu");
  // Those that come after it are lost too, and no more are asked for.
  EXPECT_FALSE(stage_->takes_device_frames());
  std::string why;
  EXPECT_FALSE(stage_->decode_context(why));
  EXPECT_EQ(why, "the feed has left the GPU");
  decoded[0].device_lost = false;
  decoded[0].plan = stage_->prepare(decoded.conversions(), decoded.memory());
  stage_->submit(decoded[0]);
  EXPECT_EQ(stage_->wait(decoded[0], {}, soon()), Stage::Wait::kDeviceLost);
}

TEST_F(CudaLossTest, FramesThatAHungGpuHasAreKeptUntilItLetsGo) {
  Jobs jobs(nv12_to_two(), 7);  // four in the lanes, three that wait for them
  jobs.put_on(device_->context());
  jobs.use(stage_->prepare(jobs.conversions(), jobs.memory()));
  stand_in::hold(kernel_stream());
  submit(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(stage_->wait(jobs[i], {}, soon()), Stage::Wait::kDeviceLost);
    jobs[i].input = {};
  }
  EXPECT_TRUE(device_->lost());
  EXPECT_EQ(jobs.surfaces_back(), 0);
  stage_.reset();
  let_go();
  EXPECT_TRUE(comes([&] { return jobs.surfaces_back() == 7; }));
}

TEST_F(CudaLossTest, AFeedThatLeavesAHealthyGpuLosesTheFramesThere) {
  Jobs jobs(nv12_to_two(), 6);
  jobs.put_on(device_->context());
  jobs.use(stage_->prepare(jobs.conversions(), jobs.memory()));
  stand_in::fail_nth_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
  stand_in::hold();
  submit(jobs);
  stand_in::release();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    // The GPU had three more jobs, two in each lane, by then.
    const Stage::Wait result = stage_->wait(jobs[i], {}, soon());
    EXPECT_EQ(result, i > 0 && i < 4 ? Stage::Wait::kReady : Stage::Wait::kDeviceLost) << i;
    if (result == Stage::Wait::kReady) jobs.expect_exact(i);
  }
  EXPECT_FALSE(device_->lost());
  EXPECT_FALSE(stage_->takes_device_frames());
}

TEST_F(CudaLossTest, FrameMemoryIsRegisteredAndCopiesAreAsynchronous) {
  Jobs jobs(bgra_to_two(), 6);
  run(jobs);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
}

TEST_F(CudaLossTest, NothingIsAllocatedOnceAFeedRuns) {
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

TEST_F(CudaLossTest, AGpuLostInFlightLosesNoFrame) {
  Jobs jobs(bgra_to_two(), 12);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  stand_in::lose_device(cudaErrorIllegalAddress);
  wait(jobs);
  EXPECT_TRUE(device_->lost());
  EXPECT_EQ(stats_.status().device, "cpu");
  EXPECT_EQ(converting(), 0u);
  EXPECT_EQ(ready(), jobs.size());
  stage_.reset();  // the jobs' slots are free again
  make_stage({});
  EXPECT_EQ(stats_.status().device, "cpu");
  Jobs more(bgra_to_two(), 4);
  run(more);
  EXPECT_GT(cpu_->busy().any().total().count(), 0);
}

TEST_F(CudaLossTest, AfterTheLossTheSameStageGoesOnOnTheCpu) {
  Jobs jobs(bgra_to_two(), 4);
  run(jobs);
  stand_in::lose_device();
  Jobs known(bgra_to_two(), 4);
  known.use(jobs[0].plan);
  submit(known);
  wait(known);
  Jobs fresh({conversion_of(PixelFormat::kI420, PixelFormat::kNv12)}, 4);
  run(fresh);
  EXPECT_TRUE(device_->lost());
}

TEST_F(CudaLossTest, ALossReachesEveryFeed) {
  FeedStats other_stats("yard", {{"a"}, {"b"}}, {}, 2);
  std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  Jobs jobs(bgra_to_two(), 6);
  Jobs other_jobs(bgra_to_two(), 6);
  jobs.use(stage_->prepare(jobs.conversions()));
  other_jobs.use(other->prepare(other_jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  for (std::size_t i = 0; i < other_jobs.size(); ++i) other->submit(other_jobs[i]);
  stand_in::lose_device();
  wait(jobs);
  for (std::size_t i = 0; i < other_jobs.size(); ++i) {
    ASSERT_EQ(other->wait(other_jobs[i], {}, soon()), Stage::Wait::kReady);
    other_jobs.expect_exact(i);
  }
}

TEST_F(CudaLossTest, AGpuThatHangsIsLateAndThenLost) {
  Jobs jobs(bgra_to_two(), 6);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  // Late alone proves nothing; a GPU that has had the job for some time does.
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 1ms), Stage::Wait::kLate);
  EXPECT_FALSE(device_->lost());
  wait(jobs);  // long before the deadline
  EXPECT_TRUE(device_->lost());
  EXPECT_EQ(stats_.status().device, "cpu");
  // The stage goes while the GPU still holds its work, and the frames stay until it lets go.
  stage_.reset();
  EXPECT_GT(device_->context()->abandoned_jobs, 0);
  EXPECT_GT(device_->memory_bytes(), 0u);
  let_go();
}

TEST_F(CudaLossTest, AGpuThatLetsGoGivesTheFramesBackThoughTheFeedGoesOn) {
  const std::size_t before = host_buffer_bytes();
  {
    Jobs jobs(bgra_to_two(), 2);
    jobs.use(stage_->prepare(jobs.conversions()));
    stand_in::hold();
    submit(jobs);
    wait(jobs);
  }
  EXPECT_GT(host_buffer_bytes(), before);
  stand_in::release();
  EXPECT_TRUE(comes([&] { return host_buffer_bytes() == before; }));
}

TEST_F(CudaLossTest, AGpuThatComesBackWritesIntoNothingThatIsInUse) {
  Jobs jobs(bgra_to_two(), 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  wait(jobs);
  const auto target = [&jobs](std::size_t job) { return jobs[job].outputs[0].target.image; };
  for (std::size_t i = 0; i < jobs.size(); ++i) std::memset(target(i).row(0, 0), 0xEE, 16);
  let_go();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_THAT(std::span(target(i).row(0, 0), 16), ::testing::Each(0xEE));
  }
}

/// Remembers until when it was waited for last.
class WatchedCpu : public CpuDevice {
 public:
  WatchedCpu() : CpuDevice(1) {}
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int>) override {
    return std::make_unique<WatchedStage>(*this, stats);
  }
  Deadline deadline = Deadline::min();

 private:
  struct WatchedStage : CpuStage {
    WatchedStage(WatchedCpu& cpu, FeedStats& stats)
        : CpuStage(std::static_pointer_cast<CpuDevice>(cpu.shared_from_this()), stats), cpu_(cpu) {}
    Wait wait(FrameJob& job, std::stop_token stop, Deadline until) override {
      cpu_.deadline = until;
      return CpuStage::wait(job, stop, until);
    }
    WatchedCpu& cpu_;
  };
};

TEST_F(CudaLossTest, AJobThatIsMovedToTheCpuIsGivenTheWholeTimeAgain) {
  stage_.reset();
  device_.reset();
  const auto cpu = std::make_shared<WatchedCpu>();
  device_ = CudaDevice::open(0, cpu);
  make_stage({});
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  Deadline deadline;
  Stage::Wait result = Stage::Wait::kLate;
  while (cpu->deadline == Deadline::min()) {
    deadline = std::chrono::steady_clock::now() + 1500ms;
    result = stage_->wait(jobs[0], {}, deadline);
  }
  EXPECT_GT(cpu->deadline, deadline);
  EXPECT_EQ(result, Stage::Wait::kReady);
  let_go();
}

TEST_F(CudaLossTest, MemoryThatAGpuDoesNotLetGoOfHoldsUpNoOtherFeed) {
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  auto memory = std::make_unique<HostBuffer>(4096);
  stand_in::hold(kernel_stream());
  submit(jobs);
  const int calls = stand_in::calls("cudaHostUnregister");
  auto held_up = std::async(std::launch::async, [&] { memory.reset(); });
  ASSERT_TRUE(comes([&] { return stand_in::calls("cudaHostUnregister") == calls + 1; }));
  FramePool pool;
  auto other = std::async(std::launch::async, [&pool] { return pool.get(4096); });
  EXPECT_EQ(other.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(held_up.wait_for(0s), std::future_status::timeout);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaLossTest, AFeedNoticesThatAnotherFeedsJobHangs) {
  FeedStats other_stats("yard", {{"a"}, {"b"}}, {}, 1);
  Jobs jobs(bgra_to_two(), 1);
  Jobs other_jobs(bgra_to_two(), 1);
  const std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  jobs.use(stage_->prepare(jobs.conversions()));
  other_jobs.use(other->prepare(other_jobs.conversions()));
  // Nobody waits for the job that hangs, and the one behind it gets no turn.
  stand_in::hold(kernel_stream());
  submit(jobs);
  other->submit(other_jobs[0]);
  while (!device_->lost()) {
    other->wait(other_jobs[0], {}, std::chrono::steady_clock::now() + 20ms);
  }
  EXPECT_EQ(other->wait(other_jobs[0], {}, soon()), Stage::Wait::kReady);
  other_jobs.expect_exact(0);
  let_go();
  wait(jobs);
}

TEST_F(CudaLossTest, AClockThatGetsNoAnswerHoldsUpNoJob) {
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
  while (all && cudaStreamQuery(clock) == cudaSuccess) all = again();  // until it takes a mark
  EXPECT_TRUE(all && again() && again());
  EXPECT_FALSE(device_->lost());
  stand_in::release();
}

/// Told of a first job, lets the clock's mark come once those behind it are done as well.
class LateMark final : public LaneOwner {
 public:
  std::atomic<int> through{0};

 private:
  void completed(CudaLane&, FrameJob&, bool) noexcept override {
    if (through == 0) {
      EXPECT_TRUE(comes([] { return cudaStreamQuery(download_stream()) == cudaSuccess; }));
      stand_in::release(clock_stream());
      EXPECT_TRUE(comes([] { return cudaStreamQuery(clock_stream()) == cudaSuccess; }));
    }
    ++through;
  }
};

TEST_F(CudaLossTest, AMarkIsNotTimedByAJobThatWasDoneBeforeItCame) {
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
  ASSERT_TRUE(comes([&] { return owner.through == 3; }));
  for (int i = 0; i < 3; ++i) again();
  EXPECT_EQ(stand_in::backward_times(), 0);
}

TEST_F(CudaLossTest, AnyThreadMayBeTheLastToHoldALaneOrADevice) {
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

/// Starts a lane's second job when it is told of the first, as a stage does, on a stream that is
/// held from then on.
class TwoJobs final : public LaneOwner {
 public:
  TwoJobs(CudaDevice& device, FeedStats& stats, Jobs& jobs) : device_(device), jobs_(jobs) {
    device.context()->make_current();
    LaneOwner& owner = *this;
    lane_ = std::make_shared<CudaLane>(device.context(), owner, stats, 0);
    stream_ = kernel_stream();
  }
  void start(std::size_t job) {
    stand_in::hold(stream_);
    lane_->start(jobs_[job]);
    lane_->carry(jobs_[job]);
    device_.completion().watch(lane_);
  }

  std::atomic<int> through{0};
  std::atomic<bool> hung{false};  // what the device was taken for once the first was through

 private:
  void completed(CudaLane&, FrameJob&, bool) noexcept override {
    if (through == 0) {
      start(1);
      hung = device_.completion().hangs();
    }
    ++through;
  }

  CudaDevice& device_;
  Jobs& jobs_;
  std::shared_ptr<CudaLane> lane_;
  cudaStream_t stream_ = nullptr;
};

TEST_F(CudaLossTest, TheNextJobOfALaneIsNotTakenForTheOneThatWasLate) {
  Jobs jobs(bgra_to_two(), 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  TwoJobs owner(*device_, stats_, jobs);
  owner.start(0);
  ASSERT_TRUE(comes([&] { return device_->completion().hangs(); }));
  stand_in::release();  // it was late, as after the process was stopped, but it is done
  ASSERT_TRUE(comes([&] { return owner.through == 1; }));
  EXPECT_FALSE(owner.hung);
  stand_in::release();
  ASSERT_TRUE(comes([&] { return owner.through == 2; }));
  jobs.expect_all_exact();
}

/// Keeps whoever tells it of a job until it is let go, as the calls that queue the lane's next one
/// do when they block.
class HeldOwner final : public LaneOwner {
 public:
  HeldOwner(CudaDevice& device, FeedStats& stats, FrameJob& job) {
    LaneOwner& owner = *this;
    const auto lane = std::make_shared<CudaLane>(device.context(), owner, stats, 0);
    lane->start(job);
    lane->carry(job);
    device.completion().watch(lane);
    told_.acquire();
  }
  void let_go() { gate_.release(); }

 private:
  void completed(CudaLane&, FrameJob&, bool) noexcept override {
    told_.release();
    gate_.acquire();
  }
  std::binary_semaphore told_{0};
  std::binary_semaphore gate_{0};
};

TEST_F(CudaLossTest, AGpuWhoseCallsBlockTheCompletionThreadIsLost) {
  Jobs first(bgra_to_two(), 1);
  Jobs jobs(bgra_to_two(), 3);
  first.use(stage_->prepare(first.conversions()));
  jobs.use(stage_->prepare(jobs.conversions()));
  HeldOwner owner(*device_, stats_, first[0]);
  submit(jobs);
  wait(jobs);
  EXPECT_TRUE(device_->lost());
  EXPECT_EQ(stats_.status().device, "cpu");
  owner.let_go();
  let_go();
}

TEST_F(CudaLossTest, AJobThatWasHandedOverLateIsNoHang) {
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  const auto begin = std::chrono::steady_clock::now();
  HeldOwner owner(*device_, stats_, jobs[0]);
  EXPECT_TRUE(comes([&] { return device_->completion().hangs(); }));
  // Asked for the first time when the process was stopped for as long, it would not have been.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 2 * CompletionThread::kHungAfter);
  owner.let_go();
  EXPECT_TRUE(comes([&] { return !device_->completion().hangs(); }));
}

/// What one encode reads of a job while another takes it from the GPU, for ThreadSanitizer to see.
TEST_F(CudaLossTest, AnEncodeReadsNoTargetThatAnotherReplaces) {
  const auto stats = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"a"}, {"b"}}, std::vector<std::string>{}, 2);
  const std::unique_ptr<Stage> stage = device_->make_stage(*stats, {});
  Jobs jobs(bgra_to_two(), 1);
  const Conversion& any = jobs.conversions().front();
  std::vector<EncodeOptions> options(2);
  FrameRing ring(1, 2, *stats);
  {
    std::array<FrameTicket, 2> tickets;
    open_tickets(stats, tickets);
    auto place = ring.try_acquire();
    FrameJob& job = **place;
    job.plan = stage->prepare(jobs.conversions());
    job.input = jobs[0].input;
    for (std::size_t i = 0; i < 2; ++i) {
      options[i].name = "ab"[i];
      options[i].codecs = {{"rawvideo"}};
      options[i].format = jobs.conversions()[i].target;
      job.outputs[i].converts = true;
      job.outputs[i].target = jobs[0].outputs[i].target;
      job.outputs[i].ticket = std::move(tickets[i]);
      job.outputs[i].encode_plan = make_encode_plan({.options = options[i],
                                                     .source = {.layout = any.source,
                                                                .width = any.width,
                                                                .height = any.height,
                                                                .color = any.source_color,
                                                                .time_base = {1, 25},
                                                                .frame_rate = {25, 1}}});
    }
    ASSERT_TRUE(place->publish());
    stand_in::hold(kernel_stream());
    stage->submit(job);
  }
  ring.close();
  std::atomic<DropReason> reason{DropReason::kStop};
  const auto encode = [&](int index) {
    PacketFanout fanout({});
    Encode(options[static_cast<std::size_t>(index)], index, false,
           stats->encode(static_cast<std::size_t>(index)), *stats, fanout)
        .run(ring, *stage, {}, reason);
  };
  std::thread first([&] { encode(0); });
  EXPECT_TRUE(comes([&] { return device_->context()->abandoned_jobs > 0; }));
  encode(1);
  first.join();
  for (const EncodeCounts& counts : stats->ledger().encodes) EXPECT_EQ(counts.out, 1u);
  let_go();
}

TEST_F(CudaLossTest, AStageThatIsDestroyedMovesItsHangingJobs) {
  Jobs jobs(bgra_to_two(), 6);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  stage_.reset();
  jobs.expect_all_exact();
  EXPECT_TRUE(device_->lost());
  let_go();
}

TEST_F(CudaLossTest, PrepareDoesNotWaitForTheGpuAndNothingIsUsedBeforeItIsThere) {
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

TEST_F(CudaLossTest, WithoutRoomThePlanIsRefusedWithTheAmounts) {
  stand_in::set_memory(100000);
  try {
    stage_->prepare(bgra_to_two());
    FAIL() << "was accepted";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kMemory);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("1 MiB are needed for 2 lanes, with 0 MiB free; "));
  }
  EXPECT_FALSE(device_->lost());
  EXPECT_EQ(device_->memory_bytes(), 0u);
}

TEST_F(CudaLossTest, WithoutRoomForTheKernelsThePlanIsRefused) {
  stand_in::fail_nth_call("cudaFuncGetAttributes", 1, cudaErrorMemoryAllocation);
  try {
    stage_->prepare(bgra_to_two());
    FAIL() << "was accepted";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kMemory);
  }
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaLossTest, WhatFailsForOneFeedLeavesTheGpuToTheOthers) {
  FeedStats other_stats("yard", {{"a"}, {"b"}}, {}, 2);
  const std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  Jobs jobs(bgra_to_two(), 6);
  Jobs other_jobs(bgra_to_two(), 6);
  jobs.use(stage_->prepare(jobs.conversions()));
  other_jobs.use(other->prepare(other_jobs.conversions()));
  stand_in::fail_nth_call("cudaLaunchKernel", 3, cudaErrorMemoryAllocation);
  submit(jobs);
  wait(jobs);
  EXPECT_EQ(stats_.status().device, "cpu");
  EXPECT_EQ(ready(), jobs.size());
  for (std::size_t i = 0; i < other_jobs.size(); ++i) other->submit(other_jobs[i]);
  for (std::size_t i = 0; i < other_jobs.size(); ++i) {
    ASSERT_EQ(other->wait(other_jobs[i], {}, soon()), Stage::Wait::kReady);
    other_jobs.expect_exact(i);
  }
  EXPECT_FALSE(device_->lost());
  EXPECT_EQ(other_stats.steps[index_of(StageStep::kH2d)].snapshot().count, other_jobs.size());
  // What comes next stays on the CPU, other formats too.
  Jobs next({conversion_of(PixelFormat::kI420, PixelFormat::kNv12)}, 2);
  const int launches = stand_in::calls("cudaLaunchKernel");
  run(next);
  EXPECT_EQ(stand_in::calls("cudaLaunchKernel"), launches);
}

TEST_F(CudaLossTest, ACallThatFailsIsLoggedWithItsFeedAndLane) {
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  const LogCapture log;
  stand_in::fail_nth_call("cudaMemcpyAsync", 1, cudaErrorInvalidValue);
  submit(jobs);
  wait(jobs);
  stage_.reset();
  EXPECT_EQ(log.count("feed gate, lane 0: cudaMemcpyAsync: invalid argument "
                      "(cudaErrorInvalidValue); cuda:0 goes on"),
            1u);
}

TEST_F(CudaLossTest, ALossIsLoggedOnceForAllFeeds) {
  FeedStats other_stats("yard", {{"a"}, {"b"}}, {}, 2);
  std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  Jobs jobs(bgra_to_two(), 6);
  Jobs other_jobs(bgra_to_two(), 6);
  jobs.use(stage_->prepare(jobs.conversions()));
  other_jobs.use(other->prepare(other_jobs.conversions()));
  const LogCapture log;
  stand_in::hold();
  submit(jobs);
  for (std::size_t i = 0; i < other_jobs.size(); ++i) other->submit(other_jobs[i]);
  stand_in::lose_device(cudaErrorIllegalAddress);
  wait(jobs);
  other.reset();
  stage_.reset();
  EXPECT_EQ(log.count("cuda:0 is lost: feed gate, lane 0: cudaEventSynchronize: an illegal memory "
                      "access was encountered (cudaErrorIllegalAddress)"),
            1u);
  EXPECT_EQ(log.count("cudaErrorIllegalAddress"), 1u);
}

TEST_F(CudaLossTest, AJobThatWasQueuedInPartIsThroughBeforeItIsGivenUp) {
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::fail_nth_call("cudaLaunchKernel", 2, cudaErrorLaunchOutOfResources);
  stand_in::hold(kernel_stream());
  submit(jobs);
  // The first conversion is queued and held.
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 20ms), Stage::Wait::kLate);
  EXPECT_NE(stats_.status().device, "cpu");
  stand_in::release();
  wait(jobs);
  EXPECT_EQ(stats_.status().device, "cpu");
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaLossTest, MemoryThatCannotBeRegisteredIsRefused) {
  stand_in::fail_nth_call("cudaHostRegister", 1, cudaErrorUnknown);
  EXPECT_THROW(HostBuffer(4096), FeedError);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaLossTest, MemoryThatCannotBeLockedIsRefused) {
  stand_in::fail_nth_call("cudaHostRegister", 1, cudaErrorMemoryAllocation);
  try {
    const HostBuffer buffer(3 << 20);
    FAIL() << "was accepted";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kMemory);
    EXPECT_THAT(error.what(), ::testing::ContainsRegex(
                                  "^3 MiB more cannot be locked for cuda:0, beside [0-9]+ MiB that "
                                  "are and with [0-9]+ MiB available: cudaHostRegister: "));
  }
  EXPECT_FALSE(device_->lost());
}

/// Everything there is to do, from opening the device on. Returns why it was refused or not done on
/// the GPU, if so.
std::string whole_life(const std::shared_ptr<Device>& cpu) {
  FeedStats stats("gate", {{"a"}, {"b"}}, {}, 2);
  Jobs jobs(bgra_to_two(), 3);
  Jobs decoded(nv12_to_two(), 2);
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
    // The second finds no other upload before it, and so is sliced.
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
    EXPECT_EQ(stats.ring_jobs[index_of(RingState::kConverting)], 0u);
    EXPECT_EQ(stats.ring_jobs[index_of(RingState::kReady)], jobs.size() + decoded_count);
    return device->lost() ? "lost" : stats.status().device == "cpu" ? "moved" : "";
  } catch (const CudaError& error) {
    return error.what();
  } catch (const FeedError& error) {
    return error.what();
  }
}

TEST_F(CudaLossTest, EveryCallMayFailOnce) {
  stage_.reset();
  device_.reset();
  stand_in::reset();
  ASSERT_EQ(whole_life(cpu_), "");
  // Three frames with two conversions, and two with one and a count.
  EXPECT_GT(stand_in::calls("cudaLaunchKernel"), 3 * 2 + 2 * 2) << "none was sliced";
  std::map<std::string, int> calls;
  for (const std::string& function : stand_in::called_functions()) {
    calls[function] = stand_in::calls(function);
  }
  for (const auto& [function, count] : calls) {
    const bool allocates = function == "cudaMallocAsync" || function == "cudaHostRegister" ||
                           function == "cudaFuncGetAttributes";
    for (const cudaError_t error : {cudaErrorUnknown, cudaErrorMemoryAllocation}) {
      if (error == cudaErrorMemoryAllocation && !allocates) continue;
      for (int n = 1; n <= count; ++n) {
        SCOPED_TRACE(function + ", call " + std::to_string(n) + ", " + cudaGetErrorName(error));
        stand_in::reset();
        stand_in::fail_nth_call(function, n, error);
        const auto began = std::chrono::steady_clock::now();
        const std::string outcome = whole_life(cpu_);
        // Not every life makes as many calls. After a second the clock takes a mark, whose calls
        // cost times alone.
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
