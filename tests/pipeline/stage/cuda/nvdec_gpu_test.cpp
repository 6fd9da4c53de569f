// NVDEC itself, which only a real GPU has. ../../source/nvdec_test.cpp tests what becomes of a
// stream that it refuses, cuda_stage_test.cpp what becomes of its frames.
#include <deque>

#include "kernels/reference.hpp"
#include "tests/pipeline/source/source_fixture.hpp"
#include "tests/pipeline/stage/cuda/stage_fixture.hpp"

namespace framelane::testing {
namespace {

/// A picture as NV12, and its pts.
struct Picture {
  std::int64_t pts = 0;
  FrameMemory memory = FrameMemory::kHost;
  Bytes bytes;
};

/// `mask`: of the result; null: none.
Bytes nv12_of(const ConstImageView& image, const PictureMask* mask) {
  Conversion conversion{image.width, image.height, image.format, {}, PixelFormat::kNv12, {}};
  FramePool pool;
  const PooledImage nv12 = allocate_image(pool, PixelFormat::kNv12, image.width, image.height);
  convert_reference(conversion, image, nv12.image);
  if (mask != nullptr) mask->apply(nv12.image);
  Bytes bytes;
  append_pixels(as_const(nv12.image), bytes);
  return bytes;
}

class NvdecTest : public RealGpuTest {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    av_log_set_level(AV_LOG_FATAL);
    RealGpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    device_ = CudaDevice::open(0, cpu_);
    stage_ = device_->make_stage(stats_, {});
  }
  void TearDown() override {
    stage_.reset();
    device_.reset();
    if (!IsSkipped()) RealGpuTest::TearDown();
  }

  std::string generate(const std::string& name, const std::string& arguments) {
    ffmpeg("-f lavfi -i testsrc2=rate=10:duration=3:size=322x242 " + arguments + " '" +
           (folder_ / name) + "'");
    return folder_ / name;
  }
  std::unique_ptr<Source> open(const std::string& path, InputOptions::DecoderKind decoder) {
    InputOptions input;
    input.url = path;
    input.decoder = decoder;
    return open_source(input, {.pool = pool_,
                               .stats = stats_,
                               .timeline = timeline_,
                               .interrupt = interrupt_,
                               .stage = stage_.get(),
                               .ring = kRing});
  }
  /// All pictures of a file. The stage copies down those that are on the GPU.
  std::vector<Picture> read(const std::string& path, InputOptions::DecoderKind decoder) {
    const std::unique_ptr<Source> source = open(path, decoder);
    std::vector<Picture> pictures;
    SourceItem item;
    while (source->read(item) == ReadResult::kItem) {
      if (item.kind != SourceItem::Kind::kFrame) continue;
      Picture picture{item.frame.pts, item.frame.memory, {}};
      picture.bytes = item.frame.memory == FrameMemory::kHost
                          ? nv12_of(item.frame.image, mask_.get())
                          : download(std::move(item.frame));
      pictures.push_back(std::move(picture));
    }
    return pictures;
  }
  Bytes download(InputFrame&& frame) {
    const ConstImageView image = frame.image;
    const Conversion same{image.width, image.height, image.format,
                          frame.color, image.format, frame.color};
    FrameJob job;
    job.sequence = sequence_++;
    job.input = std::move(frame);
    job.plan = stage_->prepare({&same, 1}, FrameMemory::kDevice, false, {}, mask_);
    job.masks = mask_ != nullptr;
    job.outputs.resize(1);
    job.outputs[0].target = allocate_image(pool_, image.format, image.width, image.height);
    stage_->submit(job);
    EXPECT_EQ(stage_->wait(job, {}, soon()), Stage::Wait::kReady);
    Bytes bytes;
    append_pixels(as_const(job.outputs[0].target.image), bytes);
    return bytes;
  }
  void expect_undamaged() const {
    for (const auto& count : stats_.decode_faults) EXPECT_EQ(count, 0u);
  }

  static constexpr auto kNvdec = InputOptions::DecoderKind::kNvdec;
  static constexpr auto kAuto = InputOptions::DecoderKind::kAuto;
  static constexpr auto kSoftware = InputOptions::DecoderKind::kSoftware;
  static constexpr int kRing = 8;

  const TempFolder folder_;
  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedStats stats_{"gate", {{"a"}}, {}, 2};
  LineClock line_clock_;
  Timeline timeline_{stats_, line_clock_};
  FramePool pool_;
  std::stop_source stop_;
  Interrupt interrupt_{stop_.get_token()};
  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<Stage> stage_;
  std::uint64_t sequence_ = 0;
  std::shared_ptr<const PictureMask> mask_;  ///< what read() covers
};

struct Coding {
  const char* file;
  const char* arguments;
};

class NvdecCodecTest : public NvdecTest, public ::testing::WithParamInterface<Coding> {};

TEST_P(NvdecCodecTest, PicturesAreThoseOfSoftwareByteForByte) {
  const std::string path = generate(GetParam().file, GetParam().arguments);
  const std::vector<Picture> expected = read(path, kSoftware);
  const std::vector<Picture> pictures = read(path, kAuto);
  const FeedStats::Status status = stats_.status();
  if (status.decoder_reason != "") {
    GTEST_SKIP() << "needs a real GPU that decodes this codec: " << status.decoder_reason;
  }
  ASSERT_EQ(pictures.size(), 30u);
  ASSERT_EQ(pictures.size(), expected.size());
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    EXPECT_EQ(pictures[i].memory, FrameMemory::kDevice);
    // The timeline continues from one reading to the next, so only differences are compared.
    EXPECT_EQ(pictures[i].pts - pictures[0].pts, expected[i].pts - expected[0].pts);
    EXPECT_TRUE(pictures[i].bytes == expected[i].bytes) << "picture " << i;
  }
  expect_undamaged();
  EXPECT_FALSE(device_->lost());
}

// The standards of these codecs define every decoded byte.
INSTANTIATE_TEST_SUITE_P(
    Codecs, NvdecCodecTest,
    ::testing::Values(Coding{"h264.mp4", "-c:v libx264 -pix_fmt yuv420p -bf 3 -refs 6"},
                      Coding{"cropped.mp4", "-vf scale=318:238 -c:v libx264 -pix_fmt yuv420p"},
                      Coding{"interlaced.ts",
                             "-vf scale=320:240 -c:v libx264 -pix_fmt yuv420p "
                             "-flags +ildct+ilme"},
                      Coding{"hevc.mkv",
                             "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p"},
                      Coding{"vp9.webm", "-c:v libvpx-vp9 -lag-in-frames 8 -cpu-used 8"},
                      Coding{"av1.mkv", "-c:v libaom-av1 -cpu-used 8 -pix_fmt yuv420p"}));

TEST_F(NvdecTest, TheDecoderIsNamed) {
  const auto source = open(clip("street_h264.mp4"), kNvdec);
  EXPECT_EQ(source->info().decoder, "h264_nvdec");
}

// The clip has 42 pictures of a camera's size, with B-frames. It is shipped, so no other program is
// needed to make it.
TEST_F(NvdecTest, TheShippedClipIsThatOfSoftwareByteForByte) {
  const std::vector<Picture> expected = read(clip("street_h264.mp4"), kSoftware);
  const std::vector<Picture> pictures = read(clip("street_h264.mp4"), kNvdec);
  ASSERT_EQ(expected.size(), 42u);
  ASSERT_EQ(pictures.size(), 42u);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    EXPECT_EQ(pictures[i].memory, FrameMemory::kDevice);
    EXPECT_TRUE(pictures[i].bytes == expected[i].bytes) << "picture " << i;
  }
  expect_undamaged();
}

// What is covered in one picture must not get into the next ones, which are predicted from it.
TEST_F(NvdecTest, AMaskedPictureIsNotTheOneThatOthersArePredictedFrom) {
  const std::vector<MaskShape> shapes{
      {.polygon = {{0, 0}, {0.6, 0}, {0.5, 1}}, .color = {255, 255, 255}},
      {.polygon = {{0.4, 0.3}, {1, 0.3}, {1, 0.9}, {0.4, 0.9}},
       .style = MaskShape::Style::kPixelate}};
  const std::string predicted =
      generate("predicted.mp4", "-c:v libx264 -pix_fmt yuv420p -bf 3 -refs 6 -g 30");
  for (const std::string& path : {predicted, std::string(clip("street_h264.mp4"))}) {
    SourceItem item;
    const auto source = open(path, kSoftware);
    while (source->read(item) == ReadResult::kItem && item.kind != SourceItem::Kind::kFrame) {
    }
    mask_ = std::make_shared<const PictureMask>(
        shapes, PixelFormat::kNv12, PictureSize{item.frame.image.width, item.frame.image.height},
        item.frame.color);
    const std::vector<Picture> expected = read(path, kSoftware);
    const std::vector<Picture> pictures = read(path, kNvdec);
    ASSERT_EQ(pictures.size(), expected.size());
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      EXPECT_EQ(pictures[i].memory, FrameMemory::kDevice);
      EXPECT_TRUE(pictures[i].bytes == expected[i].bytes) << "picture " << i;
    }
  }
}

TEST_F(NvdecTest, ThereAreSurfacesForAllThatAFeedHolds) {
  const std::string path =
      generate("references.mp4", "-c:v libx264 -pix_fmt yuv420p -bf 8 -refs 12 -b_strategy 0");
  const auto source = open(path, kNvdec);
  std::deque<InputFrame> held;
  SourceItem item;
  std::size_t frames = 0;
  while (source->read(item) == ReadResult::kItem) {
    if (item.kind != SourceItem::Kind::kFrame) continue;
    ++frames;
    EXPECT_EQ(item.frame.memory, FrameMemory::kDevice);
    held.push_back(std::move(item.frame));
    if (held.size() > kRing + 1) held.pop_front();
  }
  EXPECT_EQ(frames, 30u);
  expect_undamaged();
}

TEST_F(NvdecTest, FramesOutliveTheirDecoder) {
  const std::vector<Picture> expected = read(clip("street_h264.mp4"), kSoftware);
  auto source = open(clip("street_h264.mp4"), kNvdec);
  SourceItem item;
  while (source->read(item) == ReadResult::kItem && item.kind != SourceItem::Kind::kFrame) {
  }
  source.reset();
  EXPECT_TRUE(download(std::move(item.frame)) == expected[0].bytes);
}

TEST_F(NvdecTest, ANewSizeMidStreamIsFollowed) {
  const std::string small = generate("narrow.h264", "-c:v libx264 -pix_fmt yuv420p -g 10");
  const std::string large =
      generate("wide.h264", "-vf scale=640:480 -c:v libx264 -pix_fmt yuv420p -g 10");
  Bytes both = read_file(small);
  const Bytes rest = read_file(large);
  both.insert(both.end(), rest.begin(), rest.end());
  write_file(folder_ / "both.h264", both);
  const std::vector<Picture> expected = read(folder_ / "both.h264", kSoftware);
  const std::vector<Picture> pictures = read(folder_ / "both.h264", kNvdec);
  ASSERT_EQ(pictures.size(), 60u);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    EXPECT_TRUE(pictures[i].bytes == expected[i].bytes) << "picture " << i;
  }
  expect_undamaged();
}

TEST_F(NvdecTest, AFormatThatItDoesNotTakeMidStreamIsDecodedInSoftware) {
  const std::string plain = generate("plain.h264", "-c:v libx264 -pix_fmt yuv420p -bf 3");
  const std::string rich = generate("rich.h264", "-c:v libx264 -pix_fmt yuv422p -bf 3");
  Bytes both = read_file(plain);
  const Bytes rest = read_file(rich);
  both.insert(both.end(), rest.begin(), rest.end());
  write_file(folder_ / "both.h264", both);
  const auto source = open(folder_ / "both.h264", kAuto);
  std::size_t on_gpu = 0;
  std::size_t in_software = 0;
  SourceItem item;
  while (source->read(item) == ReadResult::kItem) {
    if (item.kind != SourceItem::Kind::kFrame) continue;
    ++(item.frame.memory == FrameMemory::kDevice ? on_gpu : in_software);
  }
  EXPECT_EQ(on_gpu, 30u);
  EXPECT_EQ(in_software, 30u);
  expect_undamaged();
}

// The format changes before the first pictures have come out. They must not come twice.
TEST_F(NvdecTest, AFormatThatItDoesNotTakeRightAfterTheStartGivesEveryPictureOnce) {
  const std::string plain =
      generate("start.h264", "-frames:v 3 -c:v libx264 -pix_fmt yuv420p -bf 3 -b_strategy 0");
  const std::string rich = generate("rich.h264", "-c:v libx264 -pix_fmt yuv422p -bf 3");
  Bytes both = read_file(plain);
  const Bytes rest = read_file(rich);
  both.insert(both.end(), rest.begin(), rest.end());
  write_file(folder_ / "both.h264", both);
  EXPECT_EQ(read(folder_ / "both.h264", kAuto).size(), 33u);
  expect_undamaged();
}

TEST_F(NvdecTest, SoftwareGoesOnAtTheNextKeyframeWhenTheStageLeavesTheGpu) {
  const std::string path = generate("groups.mp4", "-c:v libx264 -pix_fmt yuv420p -g 10 -bf 0");
  const std::vector<Picture> expected = read(path, kSoftware);
  stage_ = std::make_unique<LeavingStage>(std::move(stage_), 15);
  const std::vector<Picture> pictures = read(path, kAuto);
  EXPECT_EQ(stats_.status().decoder, "h264");
  EXPECT_EQ(stats_.status().decoder_reason, "the feed has left the GPU");
  std::size_t on_gpu = 0;
  for (const Picture& picture : pictures) {
    on_gpu += static_cast<std::size_t>(picture.memory == FrameMemory::kDevice);
  }
  EXPECT_GT(on_gpu, 0u);
  ASSERT_GE(pictures.size(), on_gpu + 10);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(pictures[pictures.size() - 1 - i].bytes == expected[29 - i].bytes) << i;
  }
  // Every packet became a picture or is counted as corrupt.
  EXPECT_EQ(pictures.size() + stats_.decode_faults[index_of(DecodeFault::kCorrupt)], 30u);
}

TEST_F(NvdecTest, ARingThatNvdecHasNoSurfacesForIsDecodedInSoftware) {
  InputOptions input;
  input.url = clip("street_h264.mp4");
  const auto source = open_source(input, {.pool = pool_,
                                          .stats = stats_,
                                          .timeline = timeline_,
                                          .interrupt = interrupt_,
                                          .stage = stage_.get(),
                                          .ring = 32});
  SourceItem item;
  while (source->read(item) == ReadResult::kItem && item.kind != SourceItem::Kind::kFrame) {
  }
  EXPECT_EQ(item.frame.memory, FrameMemory::kHost);
  EXPECT_NE(stats_.status().decoder_reason.find("a ring of 32"), std::string::npos);
}

}  // namespace
}  // namespace framelane::testing
