// Feeds whose frames lie in another program's memory, over a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "capture/framelane_capture.h"
#include "tests/pipeline/stage/cuda/cuda_feed_fixture.hpp"

namespace framelane::testing {
namespace {

constexpr int kWidth = 64;
constexpr int kHeight = 48;
constexpr std::size_t kFrameBytes = std::size_t{kWidth} * kHeight * 4;
constexpr int kPatienceMs = 60'000;

struct CloseCapture {
  void operator()(framelane_capture* capture) const { framelane_capture_close(capture); }
};

class CudaShmTest : public CudaFeedFixture<StandInTest> {
 protected:
  void SetUp() override {
    CudaFeedFixture<StandInTest>::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    framelane_capture_options options{};
    const std::string path = folder_ / "cap.sock";
    options.socket_path = path.c_str();
    options.frame_size = kFrameBytes;
    options.slots = 12;
    framelane_capture* capture = nullptr;
    ASSERT_EQ(framelane_capture_open(&options, &capture), 0) << framelane_capture_explain();
    capture_.reset(capture);
    options_.input.url = "shm:" + path;
    options_.input.format = "rawvideo";
    options_.input.raw =
        RawVideoOptions{.pixel_format = "bgra", .width = kWidth, .height = kHeight};
    options_.on_full = OnFull::kBlock;
    options_.ring = ring();
    reopen_device();
    start();
    ASSERT_EQ(framelane_capture_readers(capture, 1, kPatienceMs), 1);
  }
  virtual int ring() const { return 8; }
  virtual void reopen_device() {}
  void publish(int frames) {
    for (int i = 0; i < frames; ++i) {
      void* frame = nullptr;
      ASSERT_EQ(framelane_capture_borrow(capture_.get(), kPatienceMs, &frame), 0);
      std::memset(frame, i, kFrameBytes);
      ASSERT_EQ(framelane_capture_publish(capture_.get(), frame, framelane_capture_now()), 1);
    }
  }
  /// Until every frame has come back. The feed then loses its source, and with `once` it ends.
  void end() {
    EXPECT_EQ(framelane_capture_drain(capture_.get(), kPatienceMs), 0);
    capture_.reset();
    wait();
  }

  const TempFolder folder_;
  std::unique_ptr<framelane_capture, CloseCapture> capture_;
};

TEST_F(CudaShmTest, FramesAreUploadedFromWhereTheyLie) {
  publish(50);
  end();
  expect_all_out(50);
  EXPECT_EQ(stand_in::pageable_copies(), 0);
  for (const auto& copies : stats_->host_copies) EXPECT_EQ(copies, 0u);
}

/// The frames are in flight when the GPU is lost: each is converted again from where it lies.
TEST_F(CudaShmTest, AGpuThatIsLostLosesNoFrame) {
  publish(20);
  ASSERT_TRUE(comes_true([&] { return stats_->ledger().encodes[0].out >= 1; }));
  stand_in::hold();
  publish(8);
  stand_in::lose_device(cudaErrorIllegalAddress);
  publish(12);
  end();
  expect_all_out(40);
  EXPECT_EQ(stats_->status().device, "cpu");
}

class CudaShmUnregisteredTest : public CudaShmTest {
  void reopen_device() override {
    device_.reset();
    stand_in::set_read_only_registration(false);
    device_ = CudaDevice::open(0, cpu_);
  }
};

TEST_F(CudaShmUnregisteredTest, AGpuThatCannotLockThemUploadsThemFromOrdinaryMemory) {
  publish(50);
  end();
  expect_all_out(50);
  EXPECT_GE(stand_in::pageable_copies(), 50);
  EXPECT_EQ(stats_->status().device, "cuda:0");
  for (const auto& copies : stats_->host_copies) EXPECT_EQ(copies, 0u);
}

/// The ring is larger than the area: a GPU that takes its time would hold all slots.
class CudaShmLargeRingTest : public CudaShmTest {
  int ring() const override { return 32; }
};

TEST_F(CudaShmLargeRingTest, OneSlotIsNeverLent) {
  stand_in::hold();
  const auto held = [&] {
    framelane_capture_readers(capture_.get(), 1, 0);
    framelane_capture_counts counts{};
    framelane_capture_get_counts(capture_.get(), &counts);
    return counts.slots_held;
  };
  publish(12);
  EXPECT_TRUE(comes_true([&] { return stats_->host_copies[index_of(HostCopy::kDecoder)] == 1; }));
  EXPECT_TRUE(comes_true([&] { return held() == 11; }));
  stand_in::release();
  end();
  expect_all_out(12);
}

}  // namespace
}  // namespace framelane::testing
