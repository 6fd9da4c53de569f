// How a feed survives a GPU that hangs. Only the stand-in runtime can show it.
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <semaphore>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/encode/encode.hpp"
#include "tests/pipeline/feed/raw_encoder.hpp"
#include "tests/pipeline/measure/frame_lines.hpp"
#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {
namespace {

class CudaHangTest : public CudaStageFixture<StandInTest> {
 protected:
  std::chrono::milliseconds hung_after() const override { return 500ms; }
};

TEST_F(CudaHangTest, FramesThatAHungGpuHasAreHeldUntilItLetsGo) {
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
  EXPECT_TRUE(comes_true([&] { return jobs.surfaces_back() == 7; }));
}

TEST_F(CudaHangTest, AGpuThatHangsIsLateAndThenLost) {
  Jobs jobs(bgra_to_two(), 6);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  // Being late once proves nothing. The GPU must have had the job for some time.
  EXPECT_EQ(stage_->wait(jobs[0], {}, std::chrono::steady_clock::now() + 1ms), Stage::Wait::kLate);
  EXPECT_FALSE(device_->lost());
  wait(jobs);  // long before the deadline
  EXPECT_TRUE(device_->lost());
  EXPECT_EQ(stats_.status().device, "cpu");
  // The stage is destroyed while the GPU still has its work, and the frames stay until that has
  // ended.
  stage_.reset();
  EXPECT_TRUE(device_->context()->has_abandoned_jobs());
  EXPECT_GT(device_->memory_bytes(), 0u);
  let_go();
}

TEST_F(CudaHangTest, AGpuThatLetsGoGivesTheFramesBackThoughTheFeedGoesOn) {
  const std::size_t before = host_memory_bytes();
  {
    Jobs jobs(bgra_to_two(), 2);
    jobs.use(stage_->prepare(jobs.conversions()));
    stand_in::hold();
    submit(jobs);
    wait(jobs);
  }
  EXPECT_GT(host_memory_bytes(), before);
  stand_in::release();
  EXPECT_TRUE(comes_true([&] { return host_memory_bytes() == before; }));
}

TEST_F(CudaHangTest, AGpuThatComesBackWritesIntoNothingThatIsInUse) {
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

/// A CPU whose stage remembers the deadline of the last wait.
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

TEST_F(CudaHangTest, AJobThatIsMovedToTheCpuIsGivenTheWholeTimeAgain) {
  stage_.reset();
  device_.reset();
  const auto cpu = std::make_shared<WatchedCpu>();
  device_ = CudaDevice::open(0, cpu, hung_after());
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

TEST_F(CudaHangTest, MemoryThatAGpuDoesNotLetGoOfHoldsUpNoOtherFeed) {
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  auto memory = std::make_unique<HostBuffer>(4096);
  stand_in::hold(kernel_stream());
  submit(jobs);
  const int calls = stand_in::calls("cudaHostUnregister");
  auto held_up = std::async(std::launch::async, [&] { memory.reset(); });
  ASSERT_TRUE(comes_true([&] { return stand_in::calls("cudaHostUnregister") == calls + 1; }));
  FramePool pool;
  auto other = std::async(std::launch::async, [&pool] { return pool.get(4096); });
  EXPECT_EQ(other.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(held_up.wait_for(0s), std::future_status::timeout);
  stand_in::release();
  wait(jobs);
}

TEST_F(CudaHangTest, AFeedNoticesThatAnotherFeedsJobHangs) {
  FeedStats other_stats("yard", {{"a"}, {"b"}}, {}, 1);
  Jobs jobs(bgra_to_two(), 1);
  Jobs other_jobs(bgra_to_two(), 1);
  const std::unique_ptr<Stage> other = device_->make_stage(other_stats, {});
  jobs.use(stage_->prepare(jobs.conversions()));
  other_jobs.use(other->prepare(other_jobs.conversions()));
  // Nobody waits for the job that hangs. The other feed's job is behind it and never has its turn.
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

/// Starts the lane's second job when the first has ended, as a stage does. The stream is held again
/// from then on.
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
  std::atomic<bool> hung{false};  // what hangs() said when the second had just begun

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

TEST_F(CudaHangTest, TheNextJobOfALaneIsNotTakenForTheOneThatWasLate) {
  Jobs jobs(bgra_to_two(), 2);
  jobs.use(stage_->prepare(jobs.conversions()));
  TwoJobs owner(*device_, stats_, jobs);
  owner.start(0);
  ASSERT_TRUE(comes_true([&] { return device_->completion().hangs(); }));
  stand_in::release();  // the first job was late, as if the process had been stopped, but is done
  ASSERT_TRUE(comes_true([&] { return owner.through == 1; }));
  EXPECT_FALSE(owner.hung);
  stand_in::release();
  ASSERT_TRUE(comes_true([&] { return owner.through == 2; }));
  jobs.expect_all_exact();
}

/// Blocks the completion thread when that hands a job over, until let_go: as if the calls that
/// queue the lane's next job blocked.
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

TEST_F(CudaHangTest, AGpuWhoseCallsBlockTheCompletionThreadIsLost) {
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

TEST_F(CudaHangTest, AJobThatWasHandedOverLateIsNoHang) {
  Jobs jobs(bgra_to_two(), 1);
  jobs.use(stage_->prepare(jobs.conversions()));
  const auto begin = std::chrono::steady_clock::now();
  HeldOwner owner(*device_, stats_, jobs[0]);
  EXPECT_TRUE(comes_true([&] { return device_->completion().hangs(); }));
  // The time must pass twice. Once could mean that the process was stopped for so long.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 2 * hung_after());
  owner.let_go();
  EXPECT_TRUE(comes_true([&] { return !device_->completion().hangs(); }));
}

/// One encode reads a job while another takes it from the GPU. ThreadSanitizer would see a race.
TEST_F(CudaHangTest, AnEncodeReadsNoTargetThatAnotherReplaces) {
  const auto stats = std::make_shared<FeedStats>(
      "gate", std::vector<FeedStats::EncodeSpec>{{"a"}, {"b"}}, std::vector<std::string>{}, 2);
  const std::unique_ptr<Stage> stage = device_->make_stage(*stats, {});
  Jobs jobs(bgra_to_two(), 1);
  const Conversion& any = jobs.conversions().front();
  std::vector<EncodeOptions> options(2);
  FrameRing ring(1, 2, *stats);
  {
    std::array<FrameTicket, 2> tickets;
    open_tickets(stats, stats->run(), testing::frame_lines(*stats), tickets);
    auto place = ring.try_acquire();
    FrameJob& job = **place;
    job.plan = stage->prepare(jobs.conversions());
    job.input = jobs[0].input;
    for (std::size_t i = 0; i < 2; ++i) {
      options[i].name = "ab"[i];
      options[i].codecs = {raw_encoder()};
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
  const LineClock line_clock;
  const auto encode = [&](int index) {
    PacketFanout fanout;
    Encode(options[static_cast<std::size_t>(index)], index,
           stats->encode(static_cast<std::size_t>(index)), *stats, line_clock, fanout)
        .run(ring, *stage, {}, reason);
  };
  std::thread first([&] { encode(0); });
  EXPECT_TRUE(comes_true([&] { return device_->context()->has_abandoned_jobs(); }));
  encode(1);
  first.join();
  for (const EncodeCounts& counts : stats->ledger().encodes) EXPECT_EQ(counts.out, 1u);
  let_go();
}

TEST_F(CudaHangTest, AThreadThatTheGpuDoesNotLetGoOfCountsAsAbandoned) {
  const std::shared_ptr<CudaContext> context = device_->context();
  const std::uint64_t abandoned = threads_abandoned();
  const std::uint64_t stuck = threads_stuck();
  auto jobs = std::make_unique<Jobs>(bgra_to_two(), 1);
  jobs->use(stage_->prepare(jobs->conversions()));
  HeldOwner owner(*device_, stats_, (*jobs)[0]);
  stage_.reset();
  device_.reset();
  EXPECT_EQ(threads_abandoned(), abandoned + 1);
  EXPECT_EQ(threads_stuck(), stuck + 1);
  owner.let_go();
  jobs.reset();
  EXPECT_TRUE(comes_true([&] { return context.use_count() == 1; }));  // the thread ends
  EXPECT_TRUE(comes_true([&] { return threads_stuck() == stuck; }));
}

TEST_F(CudaHangTest, AStageThatIsDestroyedMovesItsHangingJobs) {
  Jobs jobs(bgra_to_two(), 6);
  jobs.use(stage_->prepare(jobs.conversions()));
  stand_in::hold();
  submit(jobs);
  stage_.reset();
  jobs.expect_all_exact();
  EXPECT_TRUE(device_->lost());
  let_go();
}

}  // namespace
}  // namespace framelane::testing
