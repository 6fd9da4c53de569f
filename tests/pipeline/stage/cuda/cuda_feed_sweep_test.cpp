// Whole feeds in which each CUDA call fails once, or loses the GPU: every frame is accounted for.
extern "C" {
#include <libavutil/log.h>
}

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/pipeline/feed/raw_encoder.hpp"
#include "tests/pipeline/stage/cuda/cuda_feed_fixture.hpp"

namespace framelane::testing {
namespace {

/// With a ring of one, in which each frame is sliced, and with a larger one, in which uploads find
/// others before them. Each in parts, which run side by side: part N takes every kParts-th call.
using RingAndPart = std::tuple<int, int>;
class CudaFeedSweepTest : public StandInTest, public ::testing::WithParamInterface<RingAndPart> {
 public:
  static constexpr int kParts = 2;

 protected:
  static constexpr int kWidth = 32;
  static constexpr int kHeight = 34;           // the smallest that is cut in two
  static constexpr std::uint64_t kFrames = 5;  // more than there are lanes

  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    StandInTest::SetUp();
    write_file(folder_ / "in.bgra", Bytes(kWidth * kHeight * 4 * kFrames, 99));
    options_.name = "gate";
    options_.once = true;
    options_.ring = std::get<0>(GetParam());
    options_.lanes = 2;
    options_.slices = 2;
    options_.input.url = folder_ / "in.bgra";
    options_.input.format = "rawvideo";
    options_.input.raw = {.pixel_format = "bgra", .width = kWidth, .height = kHeight};
    for (const PixelFormat format : {PixelFormat::kNv12, PixelFormat::kI444}) {
      EncodeOptions encode;
      encode.name = info(format).name;
      encode.codecs.push_back(raw_encoder());
      encode.format = format;
      OutputOptions output;
      output.name = output.from = encode.name;
      output.url = "null:";
      options_.encodes.push_back(std::move(encode));
      options_.outputs.push_back(std::move(output));
    }
  }

  enum class Life { kNotOpened, kFailed, kMoved, kEnded };
  /// Opens the GPU, runs the feed and closes the GPU. Checks that the feed has ended with every
  /// frame out, on the GPU or moved to the CPU, or failed with a reason and every frame accounted
  /// for.
  Life whole_life() const {
    std::vector<FeedStats::EncodeSpec> encodes;
    std::vector<std::string> outputs;
    for (const EncodeOptions& encode : options_.encodes) {
      encodes.push_back({encode.name, false});
      outputs.push_back(encode.name);
    }
    const auto stats = std::make_shared<FeedStats>(options_.name, encodes, outputs, options_.lanes);
    std::shared_ptr<CudaDevice> device;
    try {
      device = CudaDevice::open(0, cpu_);
    } catch (const CudaError&) {
      return Life::kNotOpened;
    }
    std::unique_ptr<Feed> feed;
    try {
      feed = Feed::start(options_, stats, device, [] {});
    } catch (const FeedError& error) {
      EXPECT_EQ(error.code(), FeedFault::kMemory);
      return Life::kFailed;
    }
    EXPECT_TRUE(feed->join_until(soon()));
    const Feed::Outcome outcome = feed->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kStopped, {}, "it did not end"});
    if (outcome.kind == Feed::Outcome::Kind::kEnded) {
      expect_all_out(*stats, kFrames);
      return stats->status().device == "cpu" ? Life::kMoved : Life::kEnded;
    }
    EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed) << outcome.reason;
    EXPECT_NE(outcome.reason, "");
    for (const EncodeCounts& counts : stats->ledger().encodes) {
      EXPECT_EQ(counts.in,
                std::accumulate(counts.dropped.begin(), counts.dropped.end(), counts.out));
      EXPECT_EQ(counts.in_flight, 0);
    }
    return Life::kFailed;
  }

  const int first_ = std::get<1>(GetParam());  // part of the calls
  const TempFolder folder_;
  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Rings, CudaFeedSweepTest,
                         ::testing::Combine(::testing::Values(1, 8),
                                            ::testing::Range(0, CudaFeedSweepTest::kParts)),
                         [](const auto& ring_and_part) {
                           return "Of" + std::to_string(std::get<0>(ring_and_part.param)) + "Part" +
                                  std::to_string(std::get<1>(ring_and_part.param));
                         });

TEST_P(CudaFeedSweepTest, TheGpuMayBeLostAtAnyCall) {
  ASSERT_EQ(whole_life(), Life::kEnded);
  if (options_.ring == 1) {
    // Two conversions of each frame.
    EXPECT_GT(stand_in::calls("cudaLaunchKernel"), 2 * static_cast<int>(kFrames)) << "not sliced";
  }
  int calls = 0;
  for (const std::string& function : stand_in::called_functions()) {
    calls += stand_in::calls(function);
  }
  EXPECT_EQ(stand_in::live(), stand_in::Live{});
  int opened = 0;
  for (int n = 1 + first_; n <= calls && !HasFailure(); n += kParts) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    stand_in::reset();
    stand_in::lose_device_at_call(n);
    const Life life = whole_life();
    EXPECT_NE(life, Life::kFailed);
    opened += static_cast<int>(life != Life::kNotOpened);
    EXPECT_EQ(stand_in::live(), stand_in::Live{});
    EXPECT_EQ(stand_in::overruns(), 0);
    EXPECT_EQ(stand_in::spinning_waits(), 0);
  }
  EXPECT_GT(opened, calls / kParts / 2);
}

TEST_P(CudaFeedSweepTest, AnyCallMayFailOnce) {
  ASSERT_EQ(whole_life(), Life::kEnded);
  std::map<std::string, int> calls;
  for (const std::string& function : stand_in::called_functions()) {
    calls[function] = stand_in::calls(function);
  }
  std::map<Life, int> lives;
  for (const auto& [function, count] : calls) {
    const bool allocates = function == "cudaMallocAsync" || function == "cudaHostRegister" ||
                           function == "cudaFuncGetAttributes" || function.ends_with("WithFlags");
    for (const cudaError_t error : {cudaErrorUnknown, cudaErrorMemoryAllocation}) {
      if (error == cudaErrorMemoryAllocation && !allocates) continue;
      for (int n = 1 + first_; n <= count && !HasFailure(); n += kParts) {
        SCOPED_TRACE(function + ", call " + std::to_string(n) + ", " + cudaGetErrorName(error));
        stand_in::reset();
        stand_in::fail_nth_call(function, n, error);
        const auto began = std::chrono::steady_clock::now();
        const Life life = whole_life();
        ++lives[life];
        // A life may make fewer calls than the first one. After a second the clock takes a mark: if
        // one of its calls fails, only times are lost.
        const bool failed = stand_in::calls(function) >= n;
        const bool marked = std::chrono::steady_clock::now() - began >= 1s;
        if (failed && !marked && !may_fail_unnoticed(function)) {
          EXPECT_NE(life, Life::kEnded);
        }
        // The GPU is not lost, so the feed may fail only where memory is allocated, and in the
        // cudaSetDevice before that.
        if (!allocates && function != "cudaSetDevice") {
          EXPECT_NE(life, Life::kFailed);
        }
        EXPECT_EQ(stand_in::live(), stand_in::Live{});
        EXPECT_EQ(stand_in::overruns(), 0);
        EXPECT_EQ(stand_in::spinning_waits(), 0);
      }
    }
  }
  EXPECT_GT(lives[Life::kFailed], 0);
  EXPECT_GT(lives[Life::kEnded] + lives[Life::kMoved],
            lives[Life::kFailed] + lives[Life::kNotOpened]);
}

}  // namespace
}  // namespace framelane::testing
