// How a feed survives a GPU that is lost, or a call that fails. Only the stand-in runtime can show
// it.
#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {
namespace {

using CudaLossTest = CudaStageFixture<StandInTest>;

TEST_F(CudaLossTest, AFrameThatCannotBeMaskedIsRefused) {
  const auto mask = mask_of(nv12_to_two().front(), 0.9);
  Jobs jobs(nv12_to_two(), 1);
  jobs.put_on(device_->context());
  const ImageView frame = writable(jobs[0].input.image);
  stand_in::fail_nth_call("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
  EXPECT_THROW(stage_->cover(mask, frame), FeedError);
  ASSERT_TRUE(stage_->cover(mask, frame));
  stand_in::fail_nth_call("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
  EXPECT_FALSE(stage_->cover(mask, frame));
  // From here on the decoder brings no frames on the GPU.
  EXPECT_FALSE(stage_->takes_device_frames());
  EXPECT_FALSE(stage_->cover(mask, frame));
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaLossTest, AFrameOnALostGpuIsNotMasked) {
  const auto mask = mask_of(nv12_to_two().front(), 0.9);
  Jobs jobs(nv12_to_two(), 1);
  jobs.put_on(device_->context());
  const ImageView frame = writable(jobs[0].input.image);
  ASSERT_TRUE(stage_->cover(mask, frame));
  stand_in::lose_device(cudaErrorIllegalAddress);
  EXPECT_FALSE(stage_->cover(mask, frame));
  EXPECT_FALSE(stage_->takes_device_frames());
  EXPECT_TRUE(device_->lost());
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
  // Frames that come later are lost too, and the stage asks for no more of them.
  EXPECT_FALSE(stage_->takes_device_frames());
  std::string why;
  EXPECT_FALSE(stage_->decode_context(why));
  EXPECT_EQ(why, "the feed has left the GPU");
  decoded[0].device_lost = false;
  decoded[0].plan = stage_->prepare(decoded.conversions(), decoded.memory());
  stage_->submit(decoded[0]);
  EXPECT_EQ(stage_->wait(decoded[0], {}, soon()), Stage::Wait::kDeviceLost);
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
    // Two jobs of each lane were on the GPU: the first, which failed, and three more.
    const Stage::Wait result = stage_->wait(jobs[i], {}, soon());
    EXPECT_EQ(result, i > 0 && i < 4 ? Stage::Wait::kReady : Stage::Wait::kDeviceLost) << i;
    if (result == Stage::Wait::kReady) jobs.expect_exact(i);
  }
  EXPECT_FALSE(device_->lost());
  EXPECT_FALSE(stage_->takes_device_frames());
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
  stage_.reset();  // must not wait for a job
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
  // Later jobs stay on the CPU, and so do other formats.
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
  // The thread that waits for the GPU may start after the loss. Then its first call reports it.
  const std::string why = "an illegal memory access was encountered (cudaErrorIllegalAddress)";
  EXPECT_EQ(log.count("cuda:0 is lost: feed gate, lane 0: cudaEventQuery: " + why) +
                log.count("cuda:0 is lost: waiting for the GPU: cudaSetDevice: " + why),
            1u);
  EXPECT_EQ(log.count("cudaErrorIllegalAddress"), 1u);
}

TEST_F(CudaLossTest, AJobThatWasQueuedInPartHasEndedBeforeItIsMoved) {
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

}  // namespace
}  // namespace framelane::testing
