// Whole feeds over a GPU that works: every frame is accounted for.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/stage/cuda/cuda_feed_fixture.hpp"
#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane::testing {
namespace {

using CudaFeedTest = CudaFeedFixture<CudaTest>;
using CudaFeedStandInTest = CudaFeedFixture<StandInTest>;

/// A GPU whose stages tell their decoders after so many packets that the feed has left the GPU.
class LeavingDevice : public DeviceWrapper {
 public:
  LeavingDevice(std::shared_ptr<Device> device, int packets)
      : DeviceWrapper(std::move(device)), packets_(packets) {}
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    return std::make_unique<LeavingStage>(device_->make_stage(stats, slices), packets_);
  }

 private:
  const int packets_;
};

TEST_F(CudaFeedTest, EveryFrameOfAFileComesOut) {
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  expect_all_out(kClipFrames);
  EXPECT_EQ(stats_->steps[index_of(StageStep::kH2d)].snapshot().count, kClipFrames);
  EXPECT_EQ(stats_->status().device, "cuda:0");
  EXPECT_FALSE(device_->lost());
  feed_.reset();
  EXPECT_TRUE(comes_true([&] { return device_->memory_bytes() == 0; }));
}

/// One frame at a time, so that none finds another upload before it.
TEST_F(CudaFeedStandInTest, TheSlicesOfTheConfigurationReachTheGpu) {
  options_.ring = 1;
  const auto copies_with = [&](int slices) {
    const int before = copies();
    options_.slices = slices;
    start();
    wait();
    feed_.reset();
    return copies() - before;
  };
  const int whole = copies_with(1);
  EXPECT_GT(copies_with(3), 2 * whole);
}

TEST_F(CudaFeedTest, FeedsOnOneDeviceDoNotDisturbEachOther) {
  options_.slices = 3;
  start();
  auto other_stats = std::make_shared<FeedStats>(
      "yard",
      std::vector<FeedStats::EncodeSpec>{{"full", false}, {"nv12", false}, {"bypass", false}},
      std::vector<std::string>{"full", "nv12", "bypass"}, options_.lanes);
  FeedOptions other_options = options_;
  other_options.name = "yard";
  const std::unique_ptr<Feed> other = Feed::start(other_options, other_stats, device_, [] {});
  wait();
  EXPECT_TRUE(other->join_until(soon()));
  expect_all_out(kClipFrames);
  std::swap(stats_, other_stats);
  expect_all_out(kClipFrames);
}

TEST_F(CudaFeedTest, EncodesComeAndGoWhileTheFeedGoesOn) {
  options_.once = false;
  options_.input.loop = true;
  options_.input.pace = InputOptions::Pace::kRealtime;
  start();
  const auto comes_out = [&](std::size_t encode) {
    const std::uint64_t before = stats_->ledger().encodes[encode].out;
    return comes_true(
        [&] { return feed_->outcome() || stats_->ledger().encodes[encode].out >= before + 10; });
  };
  ASSERT_TRUE(comes_out(1));
  for (const char* name : {"one", "two", "three"}) {
    FeedOptions next = options_;
    next.encodes[0].name = next.outputs[0].name = next.outputs[0].from = name;
    next.encodes[1].format = PixelFormat::kI420;
    stats_->reshape({{{name}, {"nv12"}, {"bypass"}}, {name, "nv12", "bypass"}, options_.lanes});
    ASSERT_TRUE(feed_->change(std::make_shared<const FeedOptions>(next)));
    ASSERT_TRUE(comes_out(0));
  }
  feed_->drain();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kStopped);
  const FeedStats::Ledger ledger = stats_->ledger();
  for (const FeedStats::EncodeLine& encode : ledger.encodes) {
    EXPECT_EQ(encode.in, ledger.frames_in);
    EXPECT_EQ(encode.out + encode.dropped[index_of(DropReason::kReload)], encode.in);
  }
  EXPECT_EQ(ledger.encodes[2].out, ledger.frames_in);
  feed_.reset();
  EXPECT_FALSE(device_->lost());
  EXPECT_TRUE(comes_true([&] { return device_->memory_bytes() == 0; }));
}

/// Behind the stand-in there is no driver that FFmpeg could decode with.
TEST_F(CudaFeedStandInTest, AutoDecodesInSoftwareWhereTheGpuDoesNotAndSaysWhyOnce) {
  options_.input.decoder = InputOptions::DecoderKind::kAuto;
  const LogCapture log;
  start();
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  expect_all_out(kClipFrames);
  EXPECT_EQ(stats_->status().decoder, "h264");
  EXPECT_EQ(stats_->status().decoder_reason, "the driver shows no context of cuda:0");
  EXPECT_EQ(stats_->status().device, "cuda:0");
  feed_ = Feed::start(options_, stats_, device_, [] {});
  EXPECT_EQ(wait().kind, Feed::Outcome::Kind::kEnded);
  feed_.reset();
  EXPECT_EQ(log.count("decoding in software, because the driver shows no context of cuda:0"), 1u);
}

TEST_F(CudaFeedStandInTest, NvdecFailsTheFeedWhereTheGpuDoesNotDecode) {
  options_.input.decoder = InputOptions::DecoderKind::kNvdec;
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.fault, FeedFault::kConfiguration);
  EXPECT_EQ(outcome.reason,
            "input.decoder is nvdec, but the driver shows no context of cuda:0; use auto to have "
            "it decoded in software then");
  expect_all_out(0);
}

using NvdecFeedTest = CudaFeedFixture<RealGpuTest>;

TEST_F(NvdecFeedTest, EveryFrameOfAFileComesOutWithoutAnUpload) {
  options_.input.decoder = InputOptions::DecoderKind::kNvdec;
  options_.input.loop = true;
  options_.input.duration = 12s;  // 120 frames
  start();
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  expect_all_out(120);
  EXPECT_EQ(stats_->status().decoder, "h264_nvdec");
  EXPECT_EQ(stats_->status().device, "cuda:0");
  EXPECT_EQ(stats_->steps[index_of(StageStep::kH2d)].snapshot().count, 0u);
  EXPECT_EQ(stats_->steps[index_of(StageStep::kD2h)].snapshot().count, 120u);
  for (const auto& copies : stats_->host_copies) EXPECT_EQ(copies, 0u);
  EXPECT_FALSE(device_->lost());
}

TEST_F(NvdecFeedTest, ADecoderThatLeavesTheGpuIsNoReasonForANewFile) {
  const TempFolder folder;
  // 120 frames in groups of 12: the frames up to the next keyframe are lost.
  const std::string path = folder / "twelves.mp4";
  ffmpeg("-stream_loop 2 -i '" + small_clip() + "' -r 10 -c:v libx264 -g 12 -bf 0 '" + path + "'");
  options_.input.url = path;
  options_.input.decoder = InputOptions::DecoderKind::kAuto;
  for (OutputOptions& output : options_.outputs) output.url = folder / (output.name + ".mp4");
  const auto leaving = std::make_shared<LeavingDevice>(device_, 40);
  stats_ = std::make_shared<FeedStats>(
      options_.name,
      std::vector<FeedStats::EncodeSpec>{{"full", false}, {"nv12", false}, {"bypass", false}},
      std::vector<std::string>{"full", "nv12", "bypass"}, options_.lanes);
  feed_ = Feed::start(options_, stats_, leaving, [] {});
  const Feed::Outcome outcome = wait();
  EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kEnded) << outcome.reason;
  EXPECT_EQ(stats_->status().decoder, "h264");
  expect_all_out(stats_->ledger().frames_in);
  EXPECT_GT(stats_->steps[index_of(StageStep::kH2d)].snapshot().count, 0u);
  for (const OutputOptions& output : options_.outputs) {
    EXPECT_TRUE(std::filesystem::exists(folder / (output.name + ".mp4")));
    EXPECT_FALSE(std::filesystem::exists(folder / (output.name + ".2.mp4")));
  }
  feed_.reset();
}

}  // namespace
}  // namespace framelane::testing
