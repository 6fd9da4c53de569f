// Frames that stay on the GPU on their way to NVENC: FFmpeg's own h264_nvenc drives a stand-in.
#include <chrono>
#include <memory>
#include <string>

#include "pipeline/encode/nvenc.hpp"
#include "tests/nvenc/nvenc_fixture.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::Bytes;

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
                      Case{"BgraTo444", "bgra", 4, 130, 66, PixelFormat::kI444},
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
  const bool full_chroma = c.target == PixelFormat::kI444;
  const char* const format = full_chroma ? "yuv444p" : "yuv420p";
  const Bytes encoded = pictures("main", format);
  const int bytes = c.width * c.height * (full_chroma ? 6 : 3) / 2;
  EXPECT_EQ(encoded.size(), static_cast<std::size_t>(bytes * kFrames));
  EXPECT_EQ(encoded, reference(c.target, format));
}

TEST_F(NvencTest, OtherEncodesOfTheFeedGetTheirFramesInHostMemory) {
  add_encode("gpu", {{"h264_nvenc"}}, PixelFormat::kNv12);
  add_encode("host", {testing::raw_encoder()}, PixelFormat::kI420);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(fake_nvenc::gpu_frames(), kFrames);
  EXPECT_EQ(steps(StageStep::kD2h), std::uint64_t{kFrames});
  const Bytes expected = reference(PixelFormat::kI420);
  EXPECT_EQ(pictures("gpu"), expected);
  EXPECT_EQ(pictures("host"), expected);
}

TEST_F(NvencTest, PicturesOfSeveralSizesStayOfOneUpload) {
  const PictureOptions half{.size = SizeOption{.percent = 50}};
  const PictureOptions square{.crop = Rect{3, 5, 101, 60},
                              .size = SizeOption{.width = 96, .height = 96},
                              .fit = Fit::kContain};
  add_encode("half", {{"h264_nvenc"}}, PixelFormat::kNv12).picture = half;
  add_encode("square", {{"h264_nvenc"}}, PixelFormat::kI420).picture = square;
  add_encode("whole", {{"h264_nvenc"}}, PixelFormat::kNv12);
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(fake_nvenc::gpu_frames(), 3 * kFrames);
  EXPECT_EQ(steps(StageStep::kH2d), std::uint64_t{kFrames});
  EXPECT_EQ(steps(StageStep::kD2h), 0U) << "something was copied down";
  const Bytes small = pictures("half");
  EXPECT_EQ(small.size(), std::size_t{66 * 34 * 3 / 2} * kFrames);
  EXPECT_EQ(small, reference(PixelFormat::kNv12, "yuv420p", half));
  EXPECT_EQ(pictures("square"), reference(PixelFormat::kI420, "yuv420p", square));
  EXPECT_EQ(pictures("whole"), reference(PixelFormat::kNv12));
}

TEST_F(NvencTest, FramesThatStayAreMaskedAndDrawnOn) {
  options_.input.mask = {{.polygon = {{0, 0}, {0.5, 0}, {0.5, 1}, {0, 1}}, .color = {200, 40, 90}}};
  OverlayOptions name;
  name.text = "gate";
  name.size = 0.3;
  name.across = name.down = Along::kEnd;
  const PictureOptions half{.size = SizeOption{.percent = 50}};
  add_encode("plain", {{"h264_nvenc"}}, PixelFormat::kNv12);
  EncodeOptions& drawn = add_encode("drawn", {{"h264_nvenc"}}, PixelFormat::kNv12);
  drawn.picture = half;
  drawn.overlays = {name};
  ASSERT_EQ(run(device_).kind, Feed::Outcome::Kind::kEnded);
  EXPECT_EQ(fake_nvenc::gpu_frames(), 2 * kFrames);
  EXPECT_EQ(steps(StageStep::kD2h), 0U) << "something was copied down";
  const Bytes plain = pictures("plain");
  EXPECT_EQ(plain, reference(PixelFormat::kNv12));
  EXPECT_EQ(pictures("drawn"), reference(PixelFormat::kNv12, "yuv420p", half, {name}));
  options_.input.mask.clear();
  EXPECT_NE(plain, reference(PixelFormat::kNv12));
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
  add_encode("main", {{"h264_nvenc"}, testing::raw_encoder()}, PixelFormat::kNv12);
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

/// NVENC does not give a frame back. `host`: it gets its frames from host memory.
class NvencHangTest : public NvencTest {
 protected:
  void expect_the_gpu_to_be_lost(bool host) {
    options_.input.pace = InputOptions::Pace::kRealtime;
    options_.input.loop = true;
    deadlines_ = {.after_cancel = 1s, .after_deadline = 200ms, .encode_call = 200ms};
    add_encode("main", {{"h264_nvenc"}}, PixelFormat::kI420);
    options_.outputs.back().url = "null:";
    auto feed = start(device_);
    EXPECT_TRUE(testing::comes_true([&] { return counts().out >= 3; }));
    EXPECT_EQ(fake_nvenc::copied_frames() > 0, host);
    fake_nvenc::hold();
    EXPECT_TRUE(testing::comes_true([&] { return feed->outcome().has_value(); }));
    const Feed::Outcome outcome = feed->outcome().value();
    EXPECT_EQ(outcome.kind, Feed::Outcome::Kind::kFailed);
    EXPECT_EQ(outcome.fault, FeedFault::kDevice);
    EXPECT_NE(outcome.reason.find("a call of h264_nvenc does not come to an end"),
              std::string::npos)
        << outcome.reason;
    EXPECT_TRUE(device_->lost());
    feed.reset();
    const EncodeCounts last = counts();
    EXPECT_EQ(last.in_flight, 0);
    EXPECT_EQ(last.in, std::accumulate(last.dropped.begin(), last.dropped.end(), last.out));
    fake_nvenc::release();
    // The threads that were left behind give back what they have.
    device_.reset();
    EXPECT_TRUE(testing::comes_true([] {
      const stand_in::Live live = stand_in::live();
      return live.streams == 0 && live.events == 0 && live.allocations == 0;
    }));
    stand_in::forget_registrations();
  }
};

TEST_F(NvencHangTest, ACallThatDoesNotReturnLosesTheGpu) { expect_the_gpu_to_be_lost(false); }

TEST_F(NvencHangTest, AlsoIfTheFramesComeFromHostMemory) {
  set_source("bgra", 130, 65, 4);  // an odd height
  expect_the_gpu_to_be_lost(true);
}

/// A feed for ever, encoded by NVENC and, in host memory, by another encoder.
class NvencLossTest : public NvencTest {
 protected:
  void SetUp() override {
    NvencTest::SetUp();
    if (IsSkipped()) return;
    options_.input.loop = true;
    add_encode("gpu", {{"h264_nvenc"}, testing::raw_encoder()}, PixelFormat::kNv12);
    add_encode("host", {testing::raw_encoder()}, PixelFormat::kNv12);
    for (OutputOptions& output : options_.outputs) output.url = "null:";
    feed_ = start(device_);
    EXPECT_TRUE(testing::comes_true([&] { return counts().out >= kFrames; }));
    EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
  }
  void TearDown() override {
    feed_.reset();
    NvencTest::TearDown();
  }
  /// Expects that the first encode goes on with the next codec, that the second loses nothing, and
  /// that every frame is accounted for.
  void expect_to_go_on(const Device& device) {
    std::uint64_t from = 0;
    EXPECT_TRUE(testing::comes_true([&] {
      if (feed_->outcome().has_value()) return true;
      if (stats_->encode(0).codec() != "rawvideo") return false;
      if (from == 0) from = counts().out;
      return counts().out >= from + kFrames;
    }));
    EXPECT_FALSE(feed_->outcome().has_value());
    EXPECT_TRUE(device.lost());
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
  expect_to_go_on(*device_);
  EXPECT_GT(counts().dropped[index_of(DropReason::kDeviceLost)], 0U);
}

TEST_F(NvencLossTest, WhenAnotherFeedHasFoundTheLossTheNextCodecGoesOn) {
  device_->lose("feed yard: a job does not come to an end");
  expect_to_go_on(*device_);
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
  expect_to_go_on(*device_);
  EXPECT_GT(counts().dropped[index_of(DropReason::kDeviceLost)], 0U);
  stand_in::release();
  EXPECT_TRUE(testing::comes_true([&] { return !device_->context()->has_abandoned_jobs(); }));
  feed_.reset();
  stand_in::forget_registrations();
}

/// The same, but NVENC's frames come from host memory.
TEST_F(NvencLossTest, AnEncoderOnAGpuOfOthersThatIsLostIsLeftToo) {
  feed_->drain();
  EXPECT_TRUE(feed_->join_until(std::chrono::steady_clock::now() + 60s));
  feed_.reset();
  stand_in::set_device_count(2);
  const auto registrar = std::make_shared<GpuRegistrar>();
  device_.reset();
  device_ = CudaDevice::open(0, cpu_, CudaDevice::kHungAfter, registrar);
  const auto other = CudaDevice::open(1, cpu_, CudaDevice::kHungAfter, registrar);
  options_.encodes[0].codecs[0].options = {{"gpu", "1"}};
  feed_ = start(device_);
  EXPECT_TRUE(testing::comes_true([&] { return counts().out >= kFrames; }));
  EXPECT_EQ(stats_->encode(0).codec(), "h264_nvenc");
  EXPECT_EQ(NvencSession::count("cuda:1"), 1);
  other->lose("feed yard: a job does not come to an end");
  expect_to_go_on(*other);
  EXPECT_FALSE(device_->lost());
  feed_.reset();
  stand_in::forget_registrations();
}

}  // namespace
}  // namespace framelane
