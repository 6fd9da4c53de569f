// How a feed survives a real GPU that fails. Each test runs in a process of its own, because a
// process that has lost its GPU has lost it for good.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>

#include "kernels/cuda/cuda_converter.hpp"
#include "tests/pipeline/stage/cuda/cuda_feed_fixture.hpp"
#include "tests/pipeline/stage/cuda/masked_feed.hpp"
#include "tests/temp_folder.hpp"

namespace framelane::testing {
namespace {

class RealGpuLossTest : public CudaFeedFixture<RealGpuTest> {
 protected:
  static constexpr std::uint64_t kFrames = 120;

  static void SetUpTestSuite() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// Runs the feed, has `mishap` happen in the middle of it, and checks that it goes on on the CPU
  /// without a frame missing or without its mask. Then ends the process as the daemon does.
  [[noreturn]] void live_through(const std::function<void()>& mishap) {
    options_.input.loop = true;
    options_.input.duration = std::chrono::seconds(kFrames / 10);
    options_.input.pace = InputOptions::Pace::kRealtime;  // so that the mishap comes in the middle
    options_.on_full = OnFull::kBlock;
    {
      const TempFolder folder;
      mask_left_half(options_, folder);
      start();
      const bool on_gpu = comes_true([&] { return stats_->ledger().encodes[0].out >= 10; });
      mishap();
      wait();
      EXPECT_TRUE(on_gpu);
      for (const auto& output : options_.outputs) expect_left_half_masked(output, kFrames);
    }
    expect_all_out(kFrames);
    EXPECT_TRUE(device_->lost());
    EXPECT_EQ(stats_->status().device, "cpu");
    feed_.reset();
    device_.reset();
    std::exit(HasFailure() ? 1 : 0);
  }
};

TEST_F(RealGpuLossTest, AKernelThatFaultsMovesTheFeedToTheCpu) {
  const auto fault = [this] {
    device_->context()->make_current();
    const Conversion conversion = conversion_of(PixelFormat::kBgra, PixelFormat::kNv12, 64, 64);
    std::uint8_t* const nowhere = reinterpret_cast<std::uint8_t*>(256);
    const auto at_nowhere = [&](PixelFormat format) {
      return ImageView{format, 64, 64, {{{nowhere, 256}, {nowhere, 256}}}};
    };
    EXPECT_EQ(CudaConverter::make(conversion)
                  ->enqueue(as_const(at_nowhere(conversion.source)), at_nowhere(conversion.target),
                            0, 64, device_->context()->enter_copy_gate().kernels().get()),
              cudaSuccess);
  };
  EXPECT_EXIT(live_through(fault), ::testing::ExitedWithCode(0), "");
}

TEST_F(RealGpuLossTest, KernelsThatDoNotComeToAnEndMoveTheFeedToTheCpu) {
  const auto hang = [this] {
    const auto gpu = device_->context();
    gpu->make_current();
    Conversion conversion = conversion_of(PixelFormat::kI444, PixelFormat::kNv12, 16384, 16384);
    conversion.source_color = {.matrix = Matrix::kBt601};  // the slow way
    const DeviceImage from(*gpu, conversion.source, conversion.width, conversion.height);
    const DeviceImage to(*gpu, conversion.target, conversion.width, conversion.height);
    gpu->memory_stream().synchronize();
    const auto converter = CudaConverter::make(conversion);
    // About five seconds on the fastest GPU there is, and not more launches than a stream holds.
    for (int i = 0; i < 900; ++i) {
      EXPECT_EQ(converter->enqueue(as_const(from.image), to.image, 0, conversion.height,
                                   gpu->enter_copy_gate().kernels().get()),
                cudaSuccess);
    }
    // The images are freed in the order of the memory stream: behind the kernels.
    const CudaEvent end(CudaEvent::Kind::kOrder);
    end.record(gpu->enter_copy_gate().kernels());
    gpu->memory_stream().wait(end.get());
  };
  EXPECT_EXIT(live_through(hang), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace framelane::testing
