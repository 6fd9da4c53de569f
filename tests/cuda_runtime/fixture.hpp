#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/cuda_runtime/control.hpp"

namespace framelane {

/// For tests that call CUDA. They run on the stand-in runtime, and unchanged on a real GPU. On the
/// stand-in this fixture checks that everything was given back, and that no device memory, device
/// or event was used wrongly (the counts of control.hpp).
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (stand_in::present()) return stand_in::reset();
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess) << "these tests were built for a GPU";
  }

  void TearDown() override {
    if (!stand_in::present()) return;
    const stand_in::Live live = stand_in::live();
    EXPECT_EQ(live.streams, 0) << "streams left";
    EXPECT_EQ(live.events, 0) << "events left";
    EXPECT_EQ(live.allocations, 0) << "device memory left: " << live.bytes << " bytes";
    EXPECT_EQ(live.registrations, 0) << "host memory left registered";
    EXPECT_EQ(stand_in::overruns(), 0) << "device memory written past its end";
    EXPECT_EQ(stand_in::premature_copies(), 0) << "memory used before it was there";
    EXPECT_EQ(stand_in::misplaced_calls(), 0) << "calls with another device current";
    EXPECT_EQ(stand_in::backward_times(), 0) << "times measured from the later event";
    stand_in::reset();
  }
};

/// With a stream of its own.
class CudaStreamTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    CudaTest::TearDown();
  }

  cudaStream_t stream_ = nullptr;
};

/// For tests of what only a real GPU has, such as NVIDIA's decoders.
class RealGpuTest : public CudaTest {
 protected:
  void SetUp() override {
    if (stand_in::present()) GTEST_SKIP() << "needs a real GPU";
    CudaTest::SetUp();
  }
};

/// For tests that steer the stand-in. Skipped if the program was built for a real GPU.
class StandInTest : public CudaTest {
 protected:
  void SetUp() override {
    if (!stand_in::present()) GTEST_SKIP() << "needs the stand-in runtime";
    CudaTest::SetUp();
  }
};

}  // namespace framelane
