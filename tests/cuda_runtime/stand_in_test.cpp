// Longer than 400 lines: each of the stand-in's rules has a test, and all share one fixture.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_runtime/counting_kernel.hpp"
#include "tests/cuda_runtime/fixture.hpp"

namespace framelane {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr std::size_t kCount = 300;
constexpr std::size_t kBytes = kCount * sizeof(std::uint32_t);

// Has a stream, numbers on the device and as many on the host.
class CudaRuntimeTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device_), kBytes), cudaSuccess);
    ASSERT_EQ(cudaHostRegister(host_.data(), kBytes, cudaHostRegisterDefault), cudaSuccess);
  }
  void TearDown() override {
    // Other tests check these results.
    static_cast<void>(cudaFree(device_));
    static_cast<void>(cudaStreamDestroy(stream_));
    static_cast<void>(cudaHostUnregister(host_.data()));
    CudaTest::TearDown();
  }

  cudaError_t clear() { return cudaMemsetAsync(device_, 0, kBytes, stream_); }
  cudaError_t count() { return enqueue_count(device_, kCount, stream_); }
  cudaError_t download() {
    return cudaMemcpyAsync(host_.data(), device_, kBytes, cudaMemcpyDeviceToHost, stream_);
  }

  cudaStream_t stream_ = nullptr;
  std::uint32_t* device_ = nullptr;
  std::vector<std::uint32_t> host_ = std::vector<std::uint32_t>(kCount);
};

TEST_F(CudaRuntimeTest, AStreamRunsItsWorkInOrder) {
  ASSERT_EQ(clear(), cudaSuccess);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(count(), cudaSuccess);
  ASSERT_EQ(download(), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_THAT(host_, Each(5u));
  EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess);
}

TEST_F(CudaRuntimeTest, RowsAreCopiedBetweenPitches) {
  const std::array<std::uint8_t, 6> rows{1, 2, 9, 3, 4, 9};
  std::array<std::uint8_t, 4> result{};
  auto* memory = reinterpret_cast<std::uint8_t*>(device_);
  ASSERT_EQ(cudaMemcpy2DAsync(memory, 5, rows.data(), 3, 2, 2, cudaMemcpyHostToDevice, stream_),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpy2DAsync(result.data(), 2, memory, 5, 2, 2, cudaMemcpyDeviceToHost, stream_),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_THAT(result, ElementsAre(1, 2, 3, 4));
}

TEST_F(CudaRuntimeTest, AnEventTellsHowLongItsStreamTook) {
  cudaEvent_t begin = nullptr, end = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&begin, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&end, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(begin, stream_), cudaSuccess);
  ASSERT_EQ(clear(), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(begin), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0F);
  EXPECT_EQ(cudaEventDestroy(begin), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
}

TEST_F(CudaRuntimeTest, AHostFunctionRunsInItsPlaceOfTheStream) {
  std::promise<void> called;
  ASSERT_EQ(clear(), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream_, [](void* data) { static_cast<std::promise<void>*>(data)->set_value(); },
                &called),
            cudaSuccess);
  called.get_future().wait();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(CudaRuntimeTest, TheDeviceSaysWhatItIs) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_NE(properties.name[0], '\0');
  std::size_t free_bytes = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_LT(free_bytes, total);
  std::array<char, 32> id{};
  EXPECT_EQ(cudaDeviceGetPCIBusId(id.data(), id.size(), 0), cudaSuccess);
  EXPECT_NE(id[0], '\0');
}

// The tests below steer the stand-in.
class StandInRuntimeTest : public CudaRuntimeTest {
 protected:
  void SetUp() override {
    if (!stand_in::present()) GTEST_SKIP() << "needs the stand-in runtime";
    CudaRuntimeTest::SetUp();
  }
  void TearDown() override {
    if (stand_in::present()) CudaRuntimeTest::TearDown();
  }
};

TEST_F(StandInRuntimeTest, AHeldStreamRunsNothingUntilItIsReleased) {
  ASSERT_EQ(clear(), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  stand_in::hold(stream_);
  ASSERT_EQ(count(), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(device_[0], 0u);
  stand_in::release();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(device_[0], 1u);
}

TEST_F(StandInRuntimeTest, AStreamWaitsForTheEventAsItWasThen) {
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  stand_in::hold(other);
  ASSERT_EQ(cudaEventRecord(event, other), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaSuccess);
  ASSERT_EQ(clear(), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  stand_in::release();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(StandInRuntimeTest, TheNthCallOfAFunctionFailsAndNoOther) {
  stand_in::fail_nth_call("cudaMemsetAsync", 2, cudaErrorLaunchFailure);
  EXPECT_EQ(clear(), cudaSuccess);
  EXPECT_EQ(clear(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(clear(), cudaSuccess);
  EXPECT_EQ(stand_in::calls("cudaMemsetAsync"), 3);
}

TEST_F(StandInRuntimeTest, ASkippedCallSaysThatItWentWellAndDoesNothing) {
  stand_in::hold();
  stand_in::skip_calls("cudaMemsetAsync", 2, 2);
  EXPECT_EQ(clear(), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  stand_in::release();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  stand_in::hold();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(clear(), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess);
  }
  EXPECT_EQ(clear(), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  stand_in::release();
}

TEST_F(StandInRuntimeTest, WhatFreesDoesSoEvenWhenItFails) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
  const int before = stand_in::live().allocations;
  stand_in::fail_nth_call("cudaFree", 1);
  EXPECT_EQ(cudaFree(memory), cudaErrorUnknown);
  EXPECT_EQ(stand_in::live().allocations, before - 1);
}

TEST_F(StandInRuntimeTest, ALostDeviceRunsNothingAndStaysLost) {
  ASSERT_EQ(clear(), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  stand_in::hold(stream_);
  ASSERT_EQ(count(), cudaSuccess);
  stand_in::lose_device();
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorECCUncorrectable);
  EXPECT_EQ(count(), cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);
  EXPECT_EQ(device_[0], 0u);
}

TEST_F(StandInRuntimeTest, TheDeviceIsLostAtTheNthCall) {
  stand_in::lose_device_at_call(2);
  EXPECT_EQ(clear(), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorECCUncorrectable);
  EXPECT_EQ(count(), cudaErrorECCUncorrectable);
}

TEST_F(StandInRuntimeTest, LosingTheDeviceWakesWhatWaits) {
  stand_in::hold(stream_);
  ASSERT_EQ(clear(), cudaSuccess);
  auto waiting = std::async(std::launch::async, [&] { return cudaStreamSynchronize(stream_); });
  while (stand_in::calls("cudaStreamSynchronize") == 0) std::this_thread::yield();
  stand_in::lose_device();
  EXPECT_EQ(waiting.get(), cudaErrorECCUncorrectable);
}

TEST_F(StandInRuntimeTest, MemoryIsLimited) {
  stand_in::set_memory(2 * kBytes);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, kBytes + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(StandInRuntimeTest, CopiesOutsideOfAnAllocationAreRefused) {
  EXPECT_EQ(cudaMemcpyAsync(device_, host_.data(), kBytes + 1, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host_.data(), host_.data(), 1, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2DAsync(device_, 3, host_.data(), 4, 4, 2, cudaMemcpyHostToDevice, stream_),
            cudaErrorInvalidPitchValue);
}

TEST_F(StandInRuntimeTest, CopiesOfUnregisteredMemoryAreCounted) {
  ASSERT_EQ(download(), cudaSuccess);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
  std::uint32_t number = 0;
  ASSERT_EQ(cudaMemcpyAsync(&number, device_, sizeof number, cudaMemcpyDeviceToHost, stream_),
            cudaSuccess);
  EXPECT_EQ(stand_in::pageable_copies(), 1);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(StandInRuntimeTest, HostMemoryIsRegisteredOnce) {
  EXPECT_EQ(cudaHostRegister(host_.data() + 1, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(host_.data() + 1), cudaErrorHostMemoryNotRegistered);
}

TEST_F(StandInRuntimeTest, MemoryThatCannotBeWrittenIsRegisteredOnlyForReading) {
  constexpr std::size_t kPage = 4096;
  void* const memory = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(cudaHostRegister(memory, kPage, cudaHostRegisterPortable), cudaErrorInvalidValue);
  ASSERT_EQ(cudaHostRegister(memory, kPage, cudaHostRegisterReadOnly), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device_, memory, 4, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(memory, device_, 4, cudaMemcpyDeviceToHost, stream_),
            cudaErrorInvalidValue);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
  EXPECT_EQ(cudaHostUnregister(memory), cudaSuccess);
  munmap(memory, kPage);
  EXPECT_EQ(cudaHostRegister(memory, kPage, cudaHostRegisterPortable), cudaErrorInvalidValue)
      << "nothing is mapped there";
}

TEST_F(StandInRuntimeTest, UnregisteringWaitsForWhatIsQueued) {
  std::array<std::uint32_t, 4> other{};
  ASSERT_EQ(cudaHostRegister(other.data(), sizeof other, 0), cudaSuccess);
  stand_in::hold(stream_);
  ASSERT_EQ(clear(), cudaSuccess);
  auto waiting =
      std::async(std::launch::async, [&other] { return cudaHostUnregister(other.data()); });
  while (stand_in::calls("cudaHostUnregister") == 0) std::this_thread::yield();
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(stand_in::live().registrations, 2);
  stand_in::release();
  EXPECT_EQ(waiting.get(), cudaSuccess);
  EXPECT_EQ(stand_in::live().registrations, 1);
}

TEST_F(StandInRuntimeTest, UnregisteringWaitsForNoOtherDeviceThanTheOneThatHasRegistered) {
  stand_in::set_device_count(2);
  std::array<std::uint32_t, 4> other{};
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaHostRegister(other.data(), sizeof other, cudaHostRegisterPortable), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  stand_in::hold(stream_);
  ASSERT_EQ(clear(), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(other.data()), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  stand_in::release();
}

TEST_F(StandInRuntimeTest, CallsForAnotherDeviceThanTheCurrentAreCounted) {
  stand_in::set_device_count(2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess);
  EXPECT_EQ(stand_in::misplaced_calls(), 1);
  stand_in::reset();  // otherwise the fixture would fail the test
}

TEST_F(StandInRuntimeTest, KernelsThatWereNotLoadedAreCounted) {
  ASSERT_EQ(clear(), cudaSuccess);
  ASSERT_EQ(count(), cudaSuccess);
  ASSERT_EQ(count(), cudaSuccess);
  EXPECT_EQ(stand_in::lazy_loads(), 1);
}

TEST_F(StandInRuntimeTest, AThreadIsInsideWhileAStreamIsServed) {
  bool inside = false;
  ASSERT_EQ(
      cudaLaunchHostFunc(
          stream_, [](void* data) { *static_cast<bool*>(data) = stand_in::inside(); }, &inside),
      cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_TRUE(inside);
  EXPECT_FALSE(stand_in::inside());
}

TEST_F(StandInRuntimeTest, WaitsInWhichAThreadSpinsAreCounted) {
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(stand_in::spinning_waits(), 1);
  ASSERT_EQ(cudaInitDevice(0, cudaDeviceScheduleBlockingSync, 0), cudaSuccess);  // flags not valid
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(stand_in::spinning_waits(), 2);
  ASSERT_EQ(cudaInitDevice(0, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(stand_in::spinning_waits(), 2);
  for (const auto& [flags, spinning] :
       {std::pair{cudaEventDefault, 3}, std::pair{cudaEventBlockingSync, 3}}) {
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
    ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
    EXPECT_EQ(stand_in::spinning_waits(), spinning);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  }
}

TEST_F(StandInRuntimeTest, TimesToAnEarlierEventAreCounted) {
  cudaEvent_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&first, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&second, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(first, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  const auto then = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() <= then) {
  }
  ASSERT_EQ(cudaEventRecord(second, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, first, second), cudaSuccess);
  EXPECT_EQ(stand_in::backward_times(), 0);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, second, first), cudaSuccess);
  EXPECT_EQ(stand_in::backward_times(), 1);
  EXPECT_EQ(cudaEventDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(second), cudaSuccess);
  stand_in::reset();  // otherwise the fixture would fail the test
}

TEST_F(StandInRuntimeTest, CopiesToMemoryThatIsNotThereYetAreCounted) {
  cudaStream_t other = nullptr;
  void* memory = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  stand_in::hold(other);
  ASSERT_EQ(cudaMallocAsync(&memory, kBytes, other), cudaSuccess);
  const auto upload = [&] {
    EXPECT_EQ(cudaMemcpyAsync(memory, host_.data(), kBytes, cudaMemcpyHostToDevice, stream_),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  };
  upload();
  EXPECT_EQ(stand_in::premature_copies(), 1);
  stand_in::release();
  ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  upload();
  EXPECT_EQ(stand_in::premature_copies(), 1);
  EXPECT_EQ(cudaFreeAsync(memory, other), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  stand_in::reset();  // otherwise the fixture would fail the test
}

TEST_F(StandInRuntimeTest, DestroyedAndDefaultStreamsAreNoStreams) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(enqueue_count(device_, kCount, nullptr), cudaErrorInvalidResourceHandle);
}

TEST_F(StandInRuntimeTest, ADestroyedStreamFinishesItsWork) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(clear(), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  stand_in::hold();
  ASSERT_EQ(enqueue_count(device_, kCount, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  stand_in::reset();
  EXPECT_EQ(device_[0], 1u);
}

TEST_F(StandInRuntimeTest, AKernelWithoutABodyForTheHostIsRefused) {
  EXPECT_EQ(enqueue_plain_kernel(stream_), cudaErrorInvalidDeviceFunction);
}

TEST_F(StandInRuntimeTest, WhatIsAliveIsCounted) {
  EXPECT_EQ(stand_in::live(),
            (stand_in::Live{
                .streams = 1, .events = 0, .allocations = 1, .registrations = 1, .bytes = kBytes}));
}

#ifndef __SANITIZE_ADDRESS__
TEST_F(StandInRuntimeTest, WritingPastTheEndIsNoticed) {
  std::uint8_t* memory = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 10), cudaSuccess);
  memory[10] = 1;
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(stand_in::overruns(), 1);
  stand_in::reset();  // otherwise the fixture would fail the test
}
#endif

}  // namespace
}  // namespace framelane
