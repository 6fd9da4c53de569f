#include "pipeline/source/decoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/av/av_color.hpp"
#include "pipeline/base/processors.hpp"
#include "pipeline/source/demuxer.hpp"
#include "tests/pipeline/base/log_capture.hpp"
#include "tests/pipeline/source/source_fixture.hpp"

namespace framelane {
namespace {

using testing::Bytes;
using testing::clip;
using testing::ffmpeg;
using testing::Reading;

// Files are read through a source, and the frames compared with those that the ffmpeg command makes
// of the same file. What counts as a decode fault is tested in decode_faults_test.cpp.
class DecoderTest : public testing::SourceFixture {
 protected:
  static Bytes pixels_of(const std::string& path, const std::string& arguments = "") {
    return ffmpeg("-i '" + path + "' -vsync passthrough " + arguments + " -f rawvideo -");
  }
};

TEST_F(DecoderTest, FrameThreadsAreOnAndFewForALiveSource) {
  const auto threads_of = [this](bool live) {
    input.url = clip("street_h264.mp4");
    Demuxer demuxer(input, false, stats, interrupt);
    FrameImporter importer(pool, stats, {});
    const Decoder decoder(*demuxer.video().codecpar, demuxer.video().time_base,
                          demuxer.frame_rate(), demuxer.options(), input, live, context(),
                          importer);
    const AVCodecContext& opened = decoder.context();
    const bool frames = (opened.active_thread_type & FF_THREAD_FRAME) != 0;
    return frames ? opened.thread_count : 1;
  };
  if (processors() > 1) {
    EXPECT_GT(threads_of(false), 1);
  }
  EXPECT_EQ(threads_of(true), std::min(processors(), 4));
  input.options = {{"threads", "7"}};
  EXPECT_EQ(threads_of(true), 7);
  EXPECT_EQ(threads_of(false), 7);
}

TEST_F(DecoderTest, H264WithBFramesIsFfmpegsByteForByte) {
  const Reading reading = read(clip("street_h264.mp4"));
  EXPECT_EQ(reading.frames, 42u);
  EXPECT_TRUE(reading.pixels == pixels_of(clip("street_h264.mp4")));
}

TEST_F(DecoderTest, FramesOfADirectDecoderAreNotCopied) {
  const Reading reading = read(clip("street_h264.mp4"));
  EXPECT_EQ(reading.pooled_frames, reading.frames);
  for (const auto& count : stats.host_copies) EXPECT_EQ(count, 0u);
}

TEST_F(DecoderTest, RowsStartOn64Bytes) {
  const Reading reading = read(clip("street_h264.mp4"));
  for (const BasicPlane<const std::uint8_t>& plane : reading.last_frame.image.planes) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(plane.data) % 64, 0u);
    EXPECT_EQ(plane.pitch % 64, 0);
  }
}

TEST_F(DecoderTest, MjpegIsFullRange601) {
  const Reading reading = read(clip("street_mjpeg.avi"));
  EXPECT_TRUE(reading.pixels == pixels_of(clip("street_mjpeg.avi")));
  EXPECT_EQ(reading.last_frame.image.format, PixelFormat::kI420);
  EXPECT_EQ(reading.last_frame.color.range, Range::kFull);
  EXPECT_EQ(reading.last_frame.color.matrix, Matrix::kBt601);
}

TEST_F(DecoderTest, UntaggedSmallVideoIs601LimitedLeft) {
  const Reading reading = read(clip("street_h264.mp4"));
  EXPECT_EQ(reading.last_frame.color.matrix, Matrix::kBt601);
  EXPECT_EQ(reading.last_frame.color.range, Range::kLimited);
  EXPECT_EQ(reading.last_frame.color.siting, Siting::kLeft);
}

TEST_F(DecoderTest, TheConfigurationsColourWinsOverTheTags) {
  input.color.range = Range::kLimited;
  input.color.matrix = Matrix::kBt709;
  const Reading reading = read(clip("street_mjpeg.avi"));
  EXPECT_EQ(reading.last_frame.color.range, Range::kLimited);
  EXPECT_EQ(reading.last_frame.color.matrix, Matrix::kBt709);
}

TEST_F(DecoderTest, OddSizesAreCroppedAsFfmpegCropsThem) {
  const std::string path = generate("odd.mkv", "-vf scale=641:479 -c:v libx264 -pix_fmt yuv444p");
  const Reading reading = read(path);
  EXPECT_EQ(reading.last_frame.image.width, 641);
  EXPECT_EQ(reading.last_frame.image.height, 479);
  EXPECT_TRUE(reading.pixels == pixels_of(path));
}

TEST_F(DecoderTest, ASinglePixelIsAFrame) {
  const std::string path = generate("one.mkv", "-vf scale=1:1 -c:v ffv1 -pix_fmt yuv420p");
  const Reading reading = read(path);
  EXPECT_EQ(reading.frames, 10u);
  EXPECT_TRUE(reading.pixels == pixels_of(path));
}

TEST_F(DecoderTest, TenBitsGoThroughSwscaleOnceAFrame) {
  const std::string path = generate("ten.mkv", "-vf scale=64:48 -c:v ffv1 -pix_fmt yuv420p10le");
  const Reading reading = read(path);
  EXPECT_EQ(reading.last_frame.image.format, PixelFormat::kI420);
  EXPECT_EQ(copies(HostCopy::kFormat), reading.frames);
  const Bytes expected =
      pixels_of(path, "-pix_fmt yuv420p -sws_flags bicubic+accurate_rnd+full_chroma_int+bitexact");
  ASSERT_EQ(reading.pixels.size(), expected.size());
  int largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(reading.pixels[i] - expected[i]));
  }
  EXPECT_LE(largest, 1);
}

TEST_F(DecoderTest, PlanarRgbBecomesBgraWithTheSameColours) {
  const std::string path = generate("gbr.mkv", "-vf scale=64:48 -c:v ffv1 -pix_fmt gbrp10le");
  const Reading reading = read(path);
  EXPECT_EQ(reading.last_frame.image.format, PixelFormat::kBgra);
  EXPECT_EQ(reading.last_frame.color.matrix, Matrix::kRgb);
}

TEST_F(DecoderTest, SwscaleIsLoggedOnceASourceHoweverOftenItsPicturesChange) {
  const std::string path =
      generate("ten.ts", "-vf scale=64:48 -c:v libx264 -pix_fmt yuv420p10le -x264-params keyint=5");
  generate("larger.ts", "-vf scale=128:96 -c:v libx264 -pix_fmt yuv420p10le");
  Bytes both = testing::read_file(path);
  for (const char* next : {"larger.ts", "ten.ts"}) {
    const Bytes rest = testing::read_file(folder / next);
    both.insert(both.end(), rest.begin(), rest.end());
  }
  testing::write_file(folder / "both.ts", both);
  const testing::LogCapture log;
  const Reading reading = read(folder / "both.ts");
  EXPECT_EQ(reading.frames, 30u);
  EXPECT_EQ(copies(HostCopy::kFormat), 30u);
  EXPECT_EQ(log.count("swscale"), 1u);
  EXPECT_EQ(log.count("video is 64x48"), 2u);
  EXPECT_EQ(log.count("video is 128x96"), 1u);
}

// The demuxer of lavfi cannot be rewound: it is opened anew for every round of the loop.
TEST_F(DecoderTest, ALoopTellsNothingTwice) {
  input.loop = true;
  const auto source = open("lavfi:testsrc2=size=64x48:rate=10:duration=0.3,format=yuv420p10le");
  const testing::LogCapture log;
  EXPECT_EQ(read(*source, 10, false).frames, 10u);
  EXPECT_EQ(log.count("swscale"), 1u);
  EXPECT_EQ(log.count("video is"), 1u);
}

struct Picture {
  const char* file;
  const char* arguments;
  Matrix matrix;
  Range range;
  Siting siting;
};

class ColourTest : public DecoderTest, public ::testing::WithParamInterface<Picture> {};

TEST_P(ColourTest, IsWhatTheStreamOrItsStandardSays) {
  const Picture& picture = GetParam();
  const Reading reading = read(generate(picture.file, picture.arguments));
  ASSERT_GT(reading.frames, 0u);
  EXPECT_EQ(reading.last_frame.color.matrix, picture.matrix);
  EXPECT_EQ(reading.last_frame.color.range, picture.range);
  EXPECT_EQ(reading.last_frame.color.siting, picture.siting);
}

constexpr auto kLimited = Range::kLimited;
constexpr auto kFull = Range::kFull;
constexpr auto kLeft = Siting::kLeft;
constexpr auto kCenter = Siting::kCenter;

INSTANTIATE_TEST_SUITE_P(
    Sources, ColourTest,
    ::testing::Values(
        Picture{"h264.mkv", "-c:v libx264 -pix_fmt yuv420p", Matrix::kBt601, kLimited, kLeft},
        Picture{"hd.mkv", "-vf scale=1280:720 -frames:v 1 -c:v libx264 -pix_fmt yuv420p",
                Matrix::kBt709, kLimited, kLeft},
        Picture{"tagged.mkv",
                "-c:v libx264 -pix_fmt yuv420p -colorspace bt2020nc -color_range pc "
                "-bsf:v h264_metadata=chroma_sample_loc_type=2",
                Matrix::kBt2020, kFull, Siting::kTopLeft},
        Picture{"yuvj.mkv", "-c:v libx264 -pix_fmt yuvj420p", Matrix::kBt601, kFull, kLeft},
        Picture{"mpeg2.ts", "-c:v mpeg2video", Matrix::kBt601, kLimited, kLeft},
        Picture{"mpeg4.avi", "-c:v mpeg4", Matrix::kBt601, kLimited, kLeft},
        Picture{"mpeg1.mpg", "-r 25 -c:v mpeg1video", Matrix::kBt601, kLimited, kCenter},
        Picture{"h261.avi", "-s 352x288 -c:v h261", Matrix::kBt601, kLimited, kCenter},
        Picture{"sorenson.flv", "-c:v flv1", Matrix::kBt601, kLimited, kCenter},
        // JFIF is BT.601 at every size.
        Picture{"jpeg.avi", "-vf scale=1280:720 -frames:v 1 -c:v mjpeg -pix_fmt yuvj420p",
                Matrix::kBt601, kFull, kCenter},
        Picture{"jpeg422.avi", "-c:v mjpeg -pix_fmt yuvj422p", Matrix::kBt601, kFull, kCenter},
        // One frame: with more, PNG's frame threads synchronize in a way that ThreadSanitizer
        // cannot see.
        Picture{"png.mkv", "-frames:v 1 -c:v png", Matrix::kRgb, kFull, kLeft},
        Picture{"rgb.mkv", "-c:v libx264rgb -qp 0", Matrix::kRgb, kFull, kLeft}));

TEST_F(DecoderTest, ReservedTagsCountAsUnspecified) {
  AvColorTags tags;
  tags.space = AVCOL_SPC_RESERVED;
  tags.primaries = AVCOL_PRI_RESERVED0;
  tags.transfer = AVCOL_TRC_RESERVED;
  const ColorSpec color = resolve_color(AV_PIX_FMT_YUV420P, 480, tags, {});
  EXPECT_EQ(color.matrix, Matrix::kBt601);
  EXPECT_EQ(color.primaries, kUnspecified);
  EXPECT_EQ(color.transfer, kUnspecified);
}

struct Fields {
  const char* file;
  const char* arguments;
  bool interlaced;
  bool top_first;
};

class InterlacedTest : public DecoderTest, public ::testing::WithParamInterface<Fields> {};

TEST_P(InterlacedTest, FramesKeepTheirFlags) {
  const Fields& fields = GetParam();
  const auto source = open(generate(fields.file, fields.arguments));
  SourceItem item;
  int frames = 0;
  while (source->read(item) == ReadResult::kItem) {
    if (item.kind != SourceItem::Kind::kFrame) continue;
    ++frames;
    EXPECT_EQ(item.frame.interlaced, fields.interlaced);
    EXPECT_EQ(item.frame.top_field_first, fields.top_first);
  }
  EXPECT_GT(frames, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Codings, InterlacedTest,
    ::testing::Values(Fields{"top.ts", "-c:v mpeg2video -flags +ildct+ilme -top 1", true, true},
                      Fields{"bottom.ts", "-c:v mpeg2video -flags +ildct+ilme -top 0", true, false},
                      Fields{"h264.ts",
                             "-c:v libx264 -pix_fmt yuv420p -flags +ildct+ilme -vf setfield=tff",
                             true, true},
                      Fields{"progressive.ts", "-c:v libx264 -pix_fmt yuv420p", false, false}));

TEST_F(DecoderTest, ADecoderWithMemoryOfItsOwnCostsOneCountedCopy) {
  const Reading reading = read("lavfi:testsrc2=size=64x48:rate=10:duration=1");
  EXPECT_EQ(reading.frames, 10u);
  EXPECT_EQ(copies(HostCopy::kDecoder), 10u);
  EXPECT_EQ(reading.pooled_frames, 10u);
  EXPECT_TRUE(reading.pixels ==
              ffmpeg("-f lavfi -i testsrc2=size=64x48:rate=10:duration=1 -f rawvideo -"));
}

TEST_F(DecoderTest, APictureStoredBottomUpIsTurnedByACopy) {
  const std::string path = generate("up.avi", "-vf scale=64:48 -c:v rawvideo -pix_fmt bgr24");
  const Reading reading = read(path);
  EXPECT_GT(copies(HostCopy::kAlignment) + copies(HostCopy::kDecoder), 0u);
  EXPECT_TRUE(reading.pixels == pixels_of(path));
}

TEST_F(DecoderTest, ANewSizeMidStreamIsDelivered) {
  const std::string small = generate("small.ts", "-vf scale=64:48 -c:v libx264 -pix_fmt yuv420p");
  const std::string large = generate("large.ts", "-vf scale=128:96 -c:v libx264 -pix_fmt yuv420p");
  Bytes both = testing::read_file(small);
  const Bytes rest = testing::read_file(large);
  both.insert(both.end(), rest.begin(), rest.end());
  testing::write_file(folder / "both.ts", both);
  const Reading reading = read(folder / "both.ts");
  EXPECT_EQ(reading.frames, 20u);
  EXPECT_EQ(reading.last_frame.image.width, 128);
  EXPECT_TRUE(testing::strictly_increasing(reading.frame_pts));
}

TEST_F(DecoderTest, AFrameThatSwscaleRefusesFailsTheFeed) {
  FrameImporter importer(pool, stats, input.color);
  const FramePtr hollow = make_frame();
  hollow->format = AV_PIX_FMT_YUV420P10LE;
  hollow->width = 64;
  hollow->height = 48;
  try {
    importer.import(*hollow);
    FAIL() << "nothing was thrown";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kInternal);
  }
}

TEST_F(DecoderTest, TheOptionThreadsReachesTheDecoder) {
  input.options = {{"threads", "1", false}};
  EXPECT_EQ(read(clip("street_h264.mp4")).frames, 42u);
}

TEST_F(DecoderTest, NvdecWithoutAGpuIsRefusedWithWhatToDo) {
  input.decoder = InputOptions::DecoderKind::kNvdec;
  EXPECT_EQ(failure_of<FeedError>(clip("street_h264.mp4")), FeedFault::kConfiguration);
  EXPECT_EQ(message,
            "input.decoder is nvdec, but the feed runs on the CPU; use auto to have it decoded in "
            "software then");
}

TEST_F(DecoderTest, AutoWithoutAGpuHasNothingToSay) {
  input.decoder = InputOptions::DecoderKind::kAuto;
  const testing::LogCapture log;
  EXPECT_EQ(read(clip("street_h264.mp4")).frames, 42u);
  EXPECT_EQ(log.count("decoding in software"), 0u);
  EXPECT_EQ(stats.status().decoder_reason, "");
}

TEST_F(DecoderTest, DecodeTimeIsObservedOncePerFrame) {
  const Reading reading = read(clip("street_h264.mp4"));
  EXPECT_EQ(stats.steps[index_of(StageStep::kDecode)].snapshot().count, reading.frames);
}

}  // namespace
}  // namespace framelane
