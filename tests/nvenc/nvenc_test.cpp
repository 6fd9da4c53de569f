// Frames that stay on the GPU on their way to NVENC: FFmpeg's own h264_nvenc drives a stand-in.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include <libavutil/log.h>
}

#include "pipeline/feed/feed.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "pipeline/stage/cuda/cuda_device.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/nvenc/control.hpp"
#include "tests/pipeline/base/wait.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;

constexpr int kFrames = 20;

class NvencTest : public StandInTest {
 protected:
  void SetUp() override {
    StandInTest::SetUp();
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_QUIET);
    fake_nvenc::reset();
    options_.name = "gate";
    options_.once = true;
    set_source("bgra", 130, 66, 4);
    device_ = CudaDevice::open(0, cpu_);
  }
  void TearDown() override {
    device_.reset();
    EXPECT_TRUE(testing::comes_true([] { return fake_nvenc::sessions() == 0; }))
        << "encoders left open";
    StandInTest::TearDown();
  }

  void set_source(const std::string& format, int width, int height, double bytes_per_pixel) {
    std::mt19937 random(7);
    Bytes frames(static_cast<std::size_t>(width * height * bytes_per_pixel) * kFrames);
    for (auto& byte : frames) byte = static_cast<Bytes::value_type>(random());
    testing::write_file(folder_ / "in.raw", frames);
    options_.input.url = folder_ / "in.raw";
    options_.input.format = "rawvideo";
    options_.input.raw = {.pixel_format = format, .width = width, .height = height};
  }
  EncodeOptions& add_encode(const std::string& name, std::vector<CodecCandidate> codecs,
                            std::optional<PixelFormat> format) {
    EncodeOptions encode;
    encode.name = name;
    encode.codecs = std::move(codecs);
    encode.format = format;
    OutputOptions output;
    output.name = output.from = name;
    output.url = folder_ / (name + ".nut");
    output.existing = Existing::kReplace;
    options_.encodes.push_back(std::move(encode));
    options_.outputs.push_back(std::move(output));
    return options_.encodes.back();
  }
  /// Runs the feed to its end. `while_it_runs` is called as often as something may have changed.
  Feed::Outcome run(
      const std::shared_ptr<Device>& device, const std::function<void()>& while_it_runs = [] {}) {
    std::vector<FeedStats::EncodeSpec> encodes;
    std::vector<std::string> outputs;
    for (const EncodeOptions& encode : options_.encodes) {
      encodes.push_back({encode.name, false});
      outputs.push_back(encode.name);
    }
    stats_ = std::make_shared<FeedStats>(options_.name, encodes, outputs, options_.lanes);
    const auto feed = Feed::start(options_, stats_, device, [] {});
    EXPECT_TRUE(testing::comes_true([&] {
      while_it_runs();
      return feed->outcome().has_value();
    }));
    const Feed::Outcome outcome = feed->outcome().value_or(
        Feed::Outcome{Feed::Outcome::Kind::kFailed, FeedFault::kInternal, "it did not end"});
    for (const EncodeCounts& counts : stats_->ledger().encodes) {
      EXPECT_EQ(counts.in_flight, 0);
      EXPECT_EQ(counts.in,
                std::accumulate(counts.dropped.begin(), counts.dropped.end(), counts.out));
    }
    return outcome;
  }
  EncodeCounts counts(std::size_t encode = 0) const { return stats_->ledger().encodes[encode]; }
  /// The pictures in the encode's file, as planes of 4:2:0.
  Bytes pictures(const std::string& encode) const {
    return testing::ffmpeg("-i '" + (folder_ / (encode + ".nut")) +
                           "' -fps_mode passthrough -f rawvideo -pix_fmt yuv420p -");
  }
  /// What the CPU makes of the source, in that format.
  Bytes reference(PixelFormat format) {
    auto encodes = std::exchange(options_.encodes, {});
    auto outputs = std::exchange(options_.outputs, {});
    add_encode("reference", {{"rawvideo"}}, format);
    EXPECT_EQ(run(cpu_).kind, Feed::Outcome::Kind::kEnded);
    options_.encodes = std::move(encodes);
    options_.outputs = std::move(outputs);
    return pictures("reference");
  }
  std::uint64_t steps(StageStep step) const {
    return stats_->steps[index_of(step)].snapshot().count;
  }

  const testing::TempFolder folder_;
  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedOptions options_;
  std::shared_ptr<CudaDevice> device_;
  std::shared_ptr<FeedStats> stats_;
};

struct Case {
  const char* name;
  const char* source;
  double bytes_per_pixel;
  int width;
  int height;
  PixelFormat target;
};

class NvencFormatsTest : public NvencTest, public ::testing::WithParamInterface<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Sources, NvencFormatsTest,
    ::testing::Values(Case{"BgraToNv12", "bgra", 4, 130, 66, PixelFormat::kNv12},
                      Case{"BgraToPlanar", "bgra", 4, 130, 66, PixelFormat::kI420},
                      Case{"Nv12Copied", "nv12", 1.5, 130, 66, PixelFormat::kNv12},
                      Case{"PlanarCopied", "yuv420p", 1.5, 130, 66, PixelFormat::kI420},
                      Case{"PlanarToNv12", "yuv420p", 1.5, 130, 66, PixelFormat::kNv12},
                      Case{"Larger", "bgra", 4, 1280, 722, PixelFormat::kNv12}),
    [](const auto& param) { return param.param.name; });

TEST_P(NvencFormatsTest, WhatIsEncodedIsByteForByteWhatTheCpuMakes) {
  const Case& c = GetParam();
  set_source(c.source, c.width, c.height, c.bytes_per_pixel);
  add_encode("main", {{"h264_nvenc"}}, c.target);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(counts().out, kFrames);
  EXPECT_EQ(fake_nvenc::gpu_frames(), kFrames);
  EXPECT_EQ(fake_nvenc::copied_frames(), 0);
  EXPECT_EQ(steps(StageStep::kD2h), 0U) << "something was copied down";
  EXPECT_EQ(device_->busy()[Engine::kD2h].total().count(), 0);
  const Bytes encoded = pictures("main");
  EXPECT_EQ(encoded.size(), static_cast<std::size_t>(c.width * c.height * 3 / 2 * kFrames));
  EXPECT_EQ(encoded, reference(c.target));
}

TEST_F(NvencTest, OtherEncodesOfTheFeedGetTheirFramesInHostMemory) {
  add_encode("gpu", {{"h264_nvenc"}}, PixelFormat::kNv12);
  add_encode("host", {{"rawvideo"}}, PixelFormat::kI420);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(fake_nvenc::gpu_frames(), kFrames);
  EXPECT_EQ(steps(StageStep::kD2h), std::uint64_t{kFrames});
  const Bytes expected = reference(PixelFormat::kI420);
  EXPECT_EQ(pictures("gpu"), expected);
  EXPECT_EQ(pictures("host"), expected);
}

TEST_F(NvencTest, FramesThatStayAreAnalysedToo) {
  options_.analyse = true;
  add_encode("main", {{"h264_nvenc"}}, PixelFormat::kNv12);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  const double mean = stats_->luma_mean;
  ASSERT_EQ(run(cpu_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->luma_mean, mean);
}

TEST_F(NvencTest, ForAnEncoderOnAnotherGpuFramesGoThroughHostMemory) {
  add_encode("main", {{"h264_nvenc", {{"gpu", "1"}}}}, PixelFormat::kNv12);  // another GPU
  stand_in::set_device_count(2);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(fake_nvenc::gpu_frames(), 0);
  EXPECT_EQ(fake_nvenc::copied_frames(), kFrames);
  EXPECT_EQ(pictures("main"), reference(PixelFormat::kNv12));
}

TEST_F(NvencTest, PlanesOfAnOddHeightGoThroughHostMemory) {
  set_source("bgra", 130, 67, 4);
  add_encode("main", {{"h264_nvenc"}}, PixelFormat::kI420);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(fake_nvenc::gpu_frames(), 0);
  EXPECT_EQ(fake_nvenc::copied_frames(), kFrames);
}

TEST_F(NvencTest, WithoutASessionTheNextCodecIsTaken) {
  fake_nvenc::limit_sessions(0);
  add_encode("main", {{"h264_nvenc"}, {"rawvideo"}}, PixelFormat::kNv12);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(stats_->encode(0).codec(), "rawvideo");
  EXPECT_EQ(counts().out, kFrames);
}

TEST_F(NvencTest, OfALiveFeedEachPacketComesAtOnce) {
  options_.input.pace = InputOptions::Pace::kRealtime;
  add_encode("main", {{"h264_nvenc"}}, PixelFormat::kNv12);
  bool at_once = false;
  run(device_, [&] {
    const EncodeCounts now = counts();
    at_once = at_once || (now.in >= 8 && now.in <= 12 && now.in_flight == 0);
  });
  EXPECT_TRUE(at_once) << "NVENC held frames back";
}

/// A feed for ever, encoded by NVENC and, in host memory, by another encoder.
class NvencLossTest : public NvencTest {
 protected:
  void SetUp() override {
    NvencTest::SetUp();
    if (IsSkipped()) return;
    options_.input.loop = true;
    add_encode("gpu", {{"h264_nvenc"}, {"rawvideo"}}, PixelFormat::kNv12);
    add_encode("host", {{"rawvideo"}}, PixelFormat::kNv12);
    for (OutputOptions& output : options_.outputs) output.url = "null:";
    stats_ = std::make_shared<FeedStats>(
        options_.name, std::vector<FeedStats::EncodeSpec>{{"gpu", false}, {"host", false}},
        std::vector<std::string>{"gpu", "host"}, options_.lanes);
    feed_ = Feed::start(options_, stats_, device_, [] {});
    EXPECT_TRUE(testing::comes_true([&] { return counts().out >= kFrames; }));
    EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
  }
  void TearDown() override {
    feed_.reset();
    NvencTest::TearDown();
  }
  /// Expects that the first encode goes on with the next codec, that the second loses nothing, and
  /// that every frame is accounted for.
  void expect_to_go_on() {
    std::uint64_t from = 0;
    EXPECT_TRUE(testing::comes_true([&] {
      if (feed_->outcome().has_value()) return true;
      if (stats_->encode(0).codec() != "rawvideo") return false;
      if (from == 0) from = counts().out;
      return counts().out >= from + kFrames;
    }));
    EXPECT_FALSE(feed_->outcome().has_value());
    EXPECT_TRUE(device_->lost());
    feed_->drain();
    EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 60s));
    for (std::size_t i = 0; i < 2; ++i) {
      const EncodeCounts last = counts(i);
      EXPECT_EQ(last.in_flight, 0);
      const auto lost = last.dropped[index_of(DropReason::kDeviceLost)];
      EXPECT_EQ(last.in, last.out + lost) << "encode " << i;
      EXPECT_TRUE(i == 0 || lost == 0) << lost;
    }
  }

  std::unique_ptr<Feed> feed_;
};

TEST_F(NvencLossTest, WhenTheGpuIsLostTheNextCodecGoesOn) {
  stand_in::lose_device(cudaErrorIllegalAddress);
  expect_to_go_on();
  EXPECT_GT(counts().dropped[index_of(DropReason::kDeviceLost)], 0U);
}

TEST_F(NvencLossTest, WhenAnotherFeedHasFoundTheLossTheNextCodecGoesOn) {
  device_->lose("feed yard: a job does not come to an end");
  expect_to_go_on();
  feed_.reset();
  stand_in::forget_registrations();  // memory that a GPU which hangs has registered stays so
}

TEST_F(NvencLossTest, WhenNvencAloneIsLeftTheFeedFailsUntilItIsStartedElsewhere) {
  feed_.reset();
  options_.encodes.resize(1);
  options_.encodes[0].codecs.resize(1);
  options_.outputs.resize(1);
  device_->lose("feed yard: a job does not come to an end");
  const Feed::Outcome outcome = run(device_);
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kDevice);
  EXPECT_NE(outcome.reason.find("h264_nvenc is on a GPU that is lost (cuda:0)"), std::string::npos)
      << outcome.reason;
  stand_in::forget_registrations();
}

TEST_F(NvencLossTest, WhenConversionsHangTheNextCodecGoesOn) {
  stand_in::hold(stand_in::streams().at(5));  // of the kernels
  expect_to_go_on();
  EXPECT_GT(counts().dropped[index_of(DropReason::kDeviceLost)], 0U);
  stand_in::release();
  EXPECT_TRUE(testing::comes_true([&] { return !device_->context()->has_abandoned_jobs(); }));
  feed_.reset();
  stand_in::forget_registrations();
}

}  // namespace
}  // namespace framelane
