// Streams that NVDEC does not take, as far as FFmpeg gets without a GPU. What NVDEC itself decodes
// is tested in tests/pipeline/stage/cuda/nvdec_gpu_test.cpp.
#include <gmock/gmock.h>

#include "pipeline/source/frame_importer.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/source/paper_stage.hpp"
#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using testing::ffmpeg;
using ::testing::HasSubstr;
using testing::LogCapture;
using testing::PaperStage;
using testing::Reading;

class NvdecRefusalTest : public testing::SourceFixture {
 protected:
  void SetUp() override {
    std::string why;
    if (!paper_.decode_context(why)) GTEST_SKIP() << "this FFmpeg is built without CUDA";
  }

  std::string generate(const std::string& name, const std::string& arguments) {
    ffmpeg("-f lavfi -i testsrc2=rate=10:duration=1.2:size=128x96 " + arguments + " '" +
           (folder / name) + "'");
    return folder / name;
  }
  Reading read_in_software(const std::string& path) {
    input.decoder = InputOptions::DecoderKind::kSoftware;
    const Reading reading = read(path);
    input.decoder = InputOptions::DecoderKind::kAuto;
    return reading;
  }
  /// The frames' times since the first: the timeline goes on from one reading to the next.
  static std::vector<std::int64_t> times(const Reading& reading) {
    std::vector<std::int64_t> times = reading.frame_pts;
    for (std::int64_t& time : times) time -= reading.frame_pts.front();
    return times;
  }
  /// No frame is missing and none comes twice.
  void expect_same(const Reading& reading, const Reading& expected) {
    EXPECT_GT(expected.frames, 0u);
    EXPECT_EQ(times(reading), times(expected));
    EXPECT_TRUE(reading.pixels == expected.pixels);
    EXPECT_EQ(reading.last_frame.memory, FrameMemory::kHost);
    for (const auto& count : stats.decode_faults) EXPECT_EQ(count, 0u);
  }

  PaperStage paper_;
};

struct Coding {
  const char* file;
  const char* arguments;
  const char* on_gpu;    ///< the decoder's name before it is refused
  const char* software;  ///< and after
};

class NvdecCodecTest : public NvdecRefusalTest, public ::testing::WithParamInterface<Coding> {};

TEST_P(NvdecCodecTest, EveryFrameIsDecodedInSoftwareInstead) {
  const std::string path = generate(GetParam().file, GetParam().arguments);
  const Reading expected = read_in_software(path);
  stage = &paper_;
  ring = 40;  // more than NVDEC has surfaces
  const LogCapture log;
  const auto source = open(path);
  // Some decoders ask for the format when they are opened, the others at the first picture.
  EXPECT_THAT((std::vector<std::string>{GetParam().on_gpu, GetParam().software}),
              ::testing::Contains(source->info().decoder));
  expect_same(read(*source), expected);
  EXPECT_THAT(stats.status().decoder_reason, HasSubstr("a ring of 40; use a smaller ring"));
  if (source->info().decoder == GetParam().on_gpu) {
    EXPECT_EQ(stats.status().decoder, GetParam().software);
  }
  // When it is opened again, the reason is not logged again.
  expect_same(read(path), expected);
  EXPECT_EQ(log.count("decoding in software, because NVDEC has 32 surfaces"), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, NvdecCodecTest,
    ::testing::Values(
        Coding{"h264.mp4", "-c:v libx264 -pix_fmt yuv420p -bf 3", "h264_nvdec", "h264"},
        Coding{"opengop.ts", "-c:v libx264 -pix_fmt yuv420p -g 4 -x264-params open-gop=1",
               "h264_nvdec", "h264"},
        Coding{"hevc.mkv", "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p",
               "hevc_nvdec", "hevc"},
        Coding{"mpeg2.ts", "-c:v mpeg2video -bf 2", "mpeg2video_nvdec", "mpeg2video"},
        Coding{"mpeg4.avi", "-c:v mpeg4", "mpeg4_nvdec", "mpeg4"},
        Coding{"mjpeg.avi", "-c:v mjpeg -pix_fmt yuvj420p", "mjpeg_nvdec", "mjpeg"},
        Coding{"vp8.webm", "-c:v libvpx -b:v 1M", "vp8_nvdec", "vp8"},
        Coding{"vp9.webm", "-c:v libvpx-vp9 -auto-alt-ref 1 -lag-in-frames 8 -cpu-used 8",
               "vp9_nvdec", "vp9"},
        Coding{"av1.mkv", "-c:v libaom-av1 -cpu-used 8 -pix_fmt yuv420p", "av1_nvdec",
               "libdav1d"}));

TEST_F(NvdecRefusalTest, WhatIsNot8Bit420StaysInSoftware) {
  struct {
    const char* file;
    const char* arguments;
    const char* pixels;
  } const streams[]{
      {"422.mkv", "-c:v libx264 -pix_fmt yuv422p", "yuv422p"},
      {"444.mkv", "-c:v libx264 -pix_fmt yuv444p", "yuv444p"},
      {"ten.mkv", "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p10le", "yuv420p10le"},
      {"422.avi", "-c:v mjpeg -pix_fmt yuvj422p", "yuvj422p"}};
  for (const auto& [file, arguments, pixels] : streams) {
    SCOPED_TRACE(file);
    const std::string path = generate(file, arguments);
    const Reading expected = read_in_software(path);
    stage = &paper_;
    expect_same(read(path), expected);
    EXPECT_THAT(stats.status().decoder_reason, HasSubstr(pixels));
    stage = nullptr;
  }
}

TEST_F(NvdecRefusalTest, ACodecThatNvdecDoesNotKnowIsDecodedInSoftware) {
  const std::string path = generate("a.mkv", "-c:v ffv1");
  const Reading expected = read_in_software(path);
  stage = &paper_;
  expect_same(read(path), expected);
  EXPECT_EQ(stats.status().decoder_reason, "FFmpeg has no NVDEC decoder for ffv1");
}

TEST_F(NvdecRefusalTest, AStageThatHasLeftTheGpuGetsEveryFrameInHostMemory) {
  const std::string path = generate("h264.mp4", "-c:v libx264 -pix_fmt yuv420p -bf 3");
  const Reading expected = read_in_software(path);
  stage = &paper_;
  paper_.frames_to_take = 0;
  expect_same(read(path), expected);
  EXPECT_EQ(stats.status().decoder_reason, "the feed has left the GPU");
}

TEST_F(NvdecRefusalTest, SoftwareIsNotAskedToExplainItself) {
  const std::string path = generate("h264.mp4", "-c:v libx264 -pix_fmt yuv420p");
  stage = &paper_;
  ring = 40;
  read(path);
  EXPECT_NE(stats.status().decoder_reason, "");
  read_in_software(path);
  EXPECT_EQ(stats.status().decoder_reason, "");
}

TEST_F(NvdecRefusalTest, OptionsReachTheDecoderThatTakesOver) {
  const std::string path = generate("h264.mp4", "-c:v libx264 -pix_fmt yuv420p -g 5");
  input.options = {{"skip_frame", "nokey", false}, {"threads", "1", false}};
  const Reading expected = read_in_software(path);
  stage = &paper_;
  ring = 40;
  expect_same(read(path), expected);
  EXPECT_LT(expected.frames, 12u);
}

TEST_F(NvdecRefusalTest, AFileThatIsLoopedIsDecodedOnInSoftware) {
  const std::string path = generate("h264.mp4", "-c:v libx264 -pix_fmt yuv420p -bf 3");
  stage = &paper_;
  ring = 40;
  input.loop = true;
  const auto source = open(path);
  EXPECT_EQ(read(*source, 30, false).frames, 30u);
}

TEST_F(NvdecRefusalTest, NvdecFailsTheFeedInstead) {
  const std::string path = generate("ten.mkv", "-c:v libx264 -pix_fmt yuv422p");
  stage = &paper_;
  input.decoder = InputOptions::DecoderKind::kNvdec;
  EXPECT_EQ(failure_of<FeedError>(path), FeedFault::kConfiguration);
  EXPECT_EQ(message,
            "input.decoder is nvdec, but framelane takes 8-bit 4:2:0 from NVDEC, and the source is "
            "h264 128x96 yuv422p; use auto to have it decoded in software then");
  paper_.frames_to_take = 0;
  EXPECT_EQ(failure_of<FeedError>(path), FeedFault::kDevice);
}

TEST_F(NvdecRefusalTest, WhatNvdecDoesNotTakeIsFoundOutBehindDamage) {
  const std::string path = generate("h264.ts", "-c:v libx264 -pix_fmt yuv420p -bf 0 -g 6");
  const std::vector<std::int64_t> positions = testing::probe(path, "packet=pos");
  ASSERT_EQ(positions.size(), 12u);
  const testing::Bytes bytes = testing::read_file(path);
  // The stream's tables, and then packets from the middle of a group of pictures.
  testing::Bytes joined(bytes.begin(), bytes.begin() + positions.front());
  joined.insert(joined.end(), bytes.begin() + positions[3], bytes.end());
  testing::write_file(folder / "joined.ts", joined);
  const Reading expected = read_in_software(folder / "joined.ts");
  const std::uint64_t damage = faults(DecodeFault::kCorrupt);
  EXPECT_EQ(damage, 3u);
  stage = &paper_;
  ring = 40;
  const Reading reading = read(folder / "joined.ts");
  EXPECT_EQ(times(reading), times(expected));
  EXPECT_TRUE(reading.pixels == expected.pixels);
  EXPECT_EQ(faults(DecodeFault::kCorrupt), 2 * damage);
}

TEST_F(NvdecRefusalTest, FramesOnTheGpuAreTakenByReferenceAndCropped) {
  FrameImporter importer(pool, stats, {});
  std::vector<std::uint8_t> memory(64 * 1024);
  int freed = 0;
  InputFrame imported;
  {
    const FramePtr frame = make_frame();
    frame->format = AV_PIX_FMT_CUDA;
    frame->width = 124;  // cropped on the right
    frame->height = 90;  // and at the bottom
    frame->crop_left = 4;
    frame->crop_top = 6;
    frame->color_range = AVCOL_RANGE_JPEG;
    frame->colorspace = AVCOL_SPC_BT709;
    frame->data[0] = memory.data();  // never looked at
    frame->data[1] = memory.data() + 24000;
    frame->linesize[0] = frame->linesize[1] = 256;
    const auto count = [](void* opaque, std::uint8_t*) { ++*static_cast<int*>(opaque); };
    for (AVBufferRef*& buffer : {std::ref(frame->buf[0]), std::ref(frame->buf[1])}) {
      buffer = av_buffer_create(memory.data(), memory.size(), count, &freed, 0);
    }
    imported = importer.import(*frame);
    EXPECT_EQ(imported.image.planes[0].data, memory.data() + 6 * 256 + 4);
    EXPECT_EQ(imported.image.planes[1].data, memory.data() + 24000 + 3 * 256 + 4);
  }
  EXPECT_EQ(imported.memory, FrameMemory::kDevice);
  EXPECT_EQ(imported.image.format, PixelFormat::kNv12);
  EXPECT_EQ(imported.image.width, 120);
  EXPECT_EQ(imported.image.height, 84);
  EXPECT_EQ(imported.image.planes[1].pitch, 256);
  EXPECT_EQ(imported.color.range, Range::kFull);
  EXPECT_EQ(imported.color.matrix, Matrix::kBt709);
  EXPECT_EQ(freed, 0);
  imported = {};
  EXPECT_EQ(freed, 2);
  for (const auto& copied : stats.host_copies) EXPECT_EQ(copied, 0u);
}

}  // namespace
}  // namespace framelane
