#include "pipeline/encode/encoder.hpp"

#include <gtest/gtest.h>

extern "C" {
#include <libavutil/opt.h>
}

#include <cstring>
#include <string>
#include <utility>

#include "pipeline/av/av_color.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/processors.hpp"

namespace framelane {
namespace {

FrameFormat bgra_source() {
  return {.layout = PixelFormat::kBgra,
          .width = 64,
          .height = 48,
          .color = {.matrix = Matrix::kRgb, .range = Range::kFull},
          .time_base = {1, 25},
          .frame_rate = {25, 1}};
}

FrameFormat yuv_source(PixelFormat layout = PixelFormat::kI420, Range range = Range::kLimited) {
  FrameFormat format = bgra_source();
  format.layout = layout;
  format.color = {.matrix = Matrix::kBt601, .range = range};
  return format;
}

EncodeOptions encode_with(std::vector<CodecCandidate> codecs) {
  EncodeOptions options;
  options.name = "live";
  options.codecs = std::move(codecs);
  return options;
}

std::shared_ptr<EncodePlan> plan_for(const EncodeOptions& options, const FrameFormat& source) {
  return make_encode_plan({.options = options, .source = source});
}

std::string refusal(const EncodeOptions& options, const FrameFormat& source) {
  try {
    plan_for(options, source);
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    return error.what();
  }
  return "";
}

TEST(EncoderTest, TakesTheSourcesOwnFormatWhereItCan) {
  const auto plan = plan_for(encode_with({{"libx264"}}), yuv_source());
  EXPECT_TRUE(is_identity(conversion_between(yuv_source(), plan->target)));
}

TEST(EncoderTest, RgbBecomesNv12InBt709Limited) {
  const auto plan = plan_for(encode_with({{"libx264"}}), bgra_source());
  EXPECT_EQ(plan->target.layout, PixelFormat::kNv12);
  EXPECT_EQ(plan->target.color.matrix, Matrix::kBt709);
  EXPECT_EQ(plan->target.color.range, Range::kLimited);
  EXPECT_EQ(plan->target.color.siting, Siting::kLeft);
}

/// As a decoder may find it in a stream; what is configured is refused before.
TEST(EncoderTest, ASizeThatNoConversionTakesIsAFaultThatNamesIt) {
  EncodeOptions options = encode_with({{"rawvideo"}});
  options.format = PixelFormat::kNv12;
  for (const auto& [width, height] : {std::pair{16385, 8}, {8, 16385}}) {
    FrameFormat source = bgra_source();
    source.width = width;
    source.height = height;
    EXPECT_EQ(refusal(options, source), "encode live: size " + std::to_string(width) + "x" +
                                            std::to_string(height) +
                                            " is outside 1x1 to 16384x16384");
  }
  FrameFormat source = bgra_source();
  source.width = 16384;
  EXPECT_EQ(refusal(options, source), "");
}

TEST(EncoderTest, TagsMatchWhatWasApplied) {
  EncodeOptions options = encode_with({{"libx264"}});
  options.color.matrix = Matrix::kBt2020;
  options.color.range = Range::kFull;
  const auto plan = plan_for(options, bgra_source());
  const AVCodecParameters& tags = *plan->media->video.parameters;
  EXPECT_EQ(tags.color_space, AVCOL_SPC_BT2020_NCL);
  EXPECT_EQ(tags.color_range, AVCOL_RANGE_JPEG);
  EXPECT_EQ(tags.chroma_location, AVCHROMA_LOC_LEFT);
}

TEST(EncoderTest, EncoderWithoutNv12GetsI420) {
  const auto plan = plan_for(encode_with({{"mpeg4"}}), bgra_source());
  EXPECT_EQ(plan->target.layout, PixelFormat::kI420);
}

TEST(EncoderTest, PackedYuvKeepsItsChromaResolution) {
  const auto plan = plan_for(encode_with({{"libx264"}}), yuv_source(PixelFormat::kYuyv));
  EXPECT_EQ(plan->target.layout, PixelFormat::kI422);
}

// JPEG's readers know one colour: BT.601, full range, chroma in the middle.
TEST(EncoderTest, JpegGetsTheColourThatItsReadersTakeItFor) {
  const ColorSpec color = plan_for(encode_with({{"mjpeg"}}), bgra_source())->target.color;
  EXPECT_EQ(color.matrix, Matrix::kBt601);
  EXPECT_EQ(color.range, Range::kFull);
  EXPECT_EQ(color.siting, Siting::kCenter);
}

TEST(EncoderTest, JpegOfYuvKeepsItsChromaWhereItIs) {
  FrameFormat source = yuv_source();
  source.color.matrix = Matrix::kBt709;
  const ColorSpec color = plan_for(encode_with({{"mjpeg"}}), source)->target.color;
  EXPECT_EQ(color.matrix, Matrix::kBt601);
  EXPECT_EQ(color.range, Range::kFull);
  EXPECT_EQ(color.siting, Siting::kLeft);
}

TEST(EncoderTest, JpegOfJpegIsPassedOn) {
  FrameFormat source = yuv_source(PixelFormat::kI422, Range::kFull);
  source.color.siting = Siting::kCenter;
  const auto plan = plan_for(encode_with({{"mjpeg"}}), source);
  EXPECT_TRUE(is_identity(conversion_between(source, plan->target)));
}

TEST(EncoderTest, AStreamThatCannotNameItsColourGetsWhatAnUntaggedOneMeans) {
  FrameFormat source = yuv_source(PixelFormat::kI420, Range::kFull);
  source.color.matrix = Matrix::kBt709;
  const ColorSpec small = plan_for(encode_with({{"mpeg4"}}), source)->target.color;
  EXPECT_EQ(small.matrix, Matrix::kBt601);
  EXPECT_EQ(small.range, Range::kLimited);
  source.width = 1280;
  source.height = 720;
  EXPECT_EQ(plan_for(encode_with({{"mpeg4"}}), source)->target.color.matrix, Matrix::kBt709);
}

TEST(EncoderTest, FullRangeInMpeg2IsRefused) {
  EncodeOptions options = encode_with({{"mpeg2video"}});
  options.color.range = Range::kFull;
  const std::string why = refusal(options, yuv_source());
  EXPECT_NE(why.find("mpeg2video has no full range"), std::string::npos) << why;
  EXPECT_EQ(plan_for(encode_with({{"mpeg2video"}}), yuv_source(PixelFormat::kI420, Range::kFull))
                ->target.color.range,
            Range::kLimited);
}

class EncoderTagsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EncoderTagsTest, OfTheEncoderAndItsStreamAreThoseOfThePixels) {
  FrameFormat tagged = yuv_source();
  tagged.color.matrix = Matrix::kBt2020;
  tagged.color.primaries = static_cast<Primaries>(AVCOL_PRI_BT2020);
  tagged.color.transfer = static_cast<Transfer>(AVCOL_TRC_BT2020_10);
  for (const FrameFormat& source : {bgra_source(), yuv_source(), tagged}) {
    const auto plan = plan_for(encode_with({{GetParam()}}), source);
    const AvColorTags expected = tags_of(plan->target.color);
    const AVCodecContext& encoder = *plan->opened;
    const AVCodecParameters& stream = *plan->media->video.parameters;
    EXPECT_EQ(encoder.colorspace, expected.space);
    EXPECT_EQ(stream.color_space, expected.space);
    EXPECT_EQ(encoder.color_range, expected.range);
    EXPECT_EQ(stream.color_range, expected.range);
    EXPECT_EQ(encoder.color_primaries, expected.primaries);
    EXPECT_EQ(stream.color_primaries, expected.primaries);
    EXPECT_EQ(encoder.color_trc, expected.transfer);
    EXPECT_EQ(stream.color_trc, expected.transfer);
    if (!info(plan->target.layout).chroma_half_width) continue;
    EXPECT_EQ(encoder.chroma_sample_location, expected.location);
    EXPECT_EQ(stream.chroma_location, expected.location);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EncoderTagsTest,
                         ::testing::Values("libx264", "libx265", "mjpeg", "mpeg4", "mpeg2video",
                                           "libvpx-vp9", "libvpx", "ffv1", "rawvideo"));

TEST(EncoderTest, RawVideoPassesRgbOn) {
  const auto plan = plan_for(encode_with({{"rawvideo"}}), bgra_source());
  EXPECT_TRUE(is_identity(conversion_between(bgra_source(), plan->target)));
}

TEST(EncoderTest, MatrixForRgbMeansYuvEvenWhereTheEncoderTakesRgb) {
  EncodeOptions options = encode_with({{"rawvideo"}});
  options.color.matrix = Matrix::kBt709;
  EXPECT_FALSE(info(plan_for(options, bgra_source())->target.layout).rgb);
}

TEST(EncoderTest, FirstAvailableCandidateIsUsed) {
  const auto plan =
      plan_for(encode_with({{"no_such_encoder"}, {"h264_nvenc"}, {"libx264"}}), yuv_source());
  EXPECT_EQ(plan->codec.name, "libx264");
}

TEST(EncoderTest, AnEncoderOfDeviceMemoryAloneIsPassedOverAndNamed) {
  if (avcodec_find_encoder_by_name("h264_vaapi") == nullptr) GTEST_SKIP() << "FFmpeg without VAAPI";
  EXPECT_EQ(plan_for(encode_with({{"h264_vaapi"}, {"mjpeg"}}), yuv_source())->codec.name, "mjpeg");
  const std::string why = refusal(encode_with({{"h264_vaapi"}}), yuv_source());
  EXPECT_NE(why.find("h264_vaapi takes frames in a device's memory alone"), std::string::npos)
      << why;
}

TEST(EncoderTest, HardwareThatIsNotThereIsNamedWithTheReason) {
  if (avcodec_find_encoder_by_name("h264_v4l2m2m") == nullptr) GTEST_SKIP() << "FFmpeg without it";
  const std::string why =
      refusal(encode_with({{"h264_v4l2m2m", {{"num_output_buffers", "4"}}}}), yuv_source());
  EXPECT_NE(why.find("h264_v4l2m2m does not open here: "), std::string::npos) << why;
}

TEST(EncoderTest, NvencIsThatOfTheFeedsGpuUnlessAnotherIsNamed) {
  const auto gpu_of = [](const CodecCandidate& candidate, const char* device) {
    std::vector<std::string> values;
    for (const AvOption& option : choose_gpu(candidate, device).options) {
      if (option.key == "gpu") values.push_back(option.value);
    }
    return values;
  };
  using Values = std::vector<std::string>;
  EXPECT_EQ(gpu_of({"h264_nvenc", {{"preset", "p4"}}}, "cuda:1"), Values{"1"});
  EXPECT_EQ(gpu_of({"hevc_nvenc", {{"gpu", "0"}}}, "cuda:1"), Values{"0"});
  EXPECT_EQ(gpu_of({"h264_nvenc"}, "cpu"), Values{});
  EXPECT_EQ(gpu_of({"libx264"}, "cuda:1"), Values{});
}

TEST(EncoderTest, NvencKnowsTheOptionThatChoosesItsGpu) {
  const AVCodec* nvenc = avcodec_find_encoder_by_name("h264_nvenc");
  if (nvenc == nullptr) GTEST_SKIP() << "FFmpeg without NVENC";
  const AVClass* type = nvenc->priv_class;
  EXPECT_NE(av_opt_find(&type, "gpu", nullptr, 0, AV_OPT_SEARCH_FAKE_OBJ), nullptr);
}

/// On a machine without it the option must not stand in the way of the next codec.
TEST(EncoderTest, AGpuThatIsChosenIsNoReasonNotToFallThrough) {
  const EncodeOptions options = encode_with({{"h264_nvenc"}, {"mjpeg"}});
  const auto plan =
      make_encode_plan({.options = options, .source = yuv_source(), .device = "cuda:63"});
  EXPECT_EQ(plan->codec.name, "mjpeg");
}

TEST(EncoderTest, NoCandidateLeftNamesThemAll) {
  const std::string why = refusal(encode_with({{"nope"}, {"neither"}}), yuv_source());
  EXPECT_NE(why.find("nope is not in this FFmpeg; neither is not"), std::string::npos) << why;
}

TEST(EncoderTest, UnknownOptionIsAnErrorAndNoReasonToFallThrough) {
  const std::string why =
      refusal(encode_with({{"libx264", {{"presett", "fast"}}}, {"mjpeg"}}), yuv_source());
  EXPECT_NE(why.find("libx264 has no option \"presett\""), std::string::npos) << why;
}

TEST(EncoderTest, ValueOutOfRangeIsAnError) {
  const std::string why = refusal(encode_with({{"libx264", {{"crf", "banana"}}}}), yuv_source());
  EXPECT_NE(why.find("libx264 rejects crf=banana"), std::string::npos) << why;
}

TEST(EncoderTest, FormatTheEncoderDoesNotTakeNamesThoseItTakes) {
  EncodeOptions options = encode_with({{"libx265"}});
  options.format = PixelFormat::kNv12;
  const std::string why = refusal(options, bgra_source());
  EXPECT_NE(why.find("libx265 does not take nv12; it takes yuv420p"), std::string::npos) << why;
}

TEST(EncoderTest, ChangingTheSitingIsRefused) {
  EncodeOptions options = encode_with({{"libx264"}});
  options.color.siting = Siting::kCenter;
  EXPECT_NE(refusal(options, yuv_source()), "");
}

TEST(EncoderTest, GopIsGivenInTime) {
  EncodeOptions options = encode_with({{"libx264"}});
  options.gop = std::chrono::seconds(2);
  EXPECT_EQ(plan_for(options, yuv_source())->opened->gop_size, 50);
}

TEST(EncoderTest, ALiveFeedsEncoderGetsFewThreadsUnlessTheOptionsSay) {
  EncodeOptions options = encode_with({{"libx264"}});
  const auto plan = make_encode_plan({.options = options, .source = yuv_source(), .live = true});
  EXPECT_GE(plan->opened->thread_count, 1);
  EXPECT_LE(plan->opened->thread_count, 4);
  EXPECT_EQ(reopen_encoder(options, *plan, false)->thread_count, plan->opened->thread_count);
  EXPECT_EQ(plan_for(options, yuv_source())->opened->thread_count, codec_threads(false));
  options.codecs[0].options = {{"threads", "7"}};
  EXPECT_EQ(make_encode_plan({.options = options, .source = yuv_source(), .live = true})
                ->opened->thread_count,
            7);
}

TEST(EncoderTest, OldCodecsCountTimeInFrames) {
  FrameFormat source = yuv_source();
  source.time_base = {1, 90000};
  const auto plan = plan_for(encode_with({{"mpeg4"}}), source);
  EXPECT_EQ(plan->target.time_base.den, 25);
}

TEST(EncoderTest, ReopenedEncoderDeliversIntoTheSameFile) {
  const EncodeOptions options = encode_with({{"libx264", {{"preset", "ultrafast"}}}});
  const auto plan =
      make_encode_plan({.options = options, .source = yuv_source(), .global_header = true});
  const CodecContextPtr again = reopen_encoder(options, *plan, true);
  const AVCodecParameters& before = *plan->media->video.parameters;
  ASSERT_EQ(again->extradata_size, before.extradata_size);
  EXPECT_EQ(std::memcmp(again->extradata, before.extradata,
                        static_cast<std::size_t>(before.extradata_size)),
            0);
}

// Hardware that is busy, or a driver that has been replaced, refuses with EINVAL what it took
// before.
TEST(EncoderTest, AnEncoderThatDoesNotOpenAgainIsNoMistakeInTheConfiguration) {
  const EncodeOptions options = encode_with({{"mpeg4"}});
  FrameFormat too_wide = yuv_source();
  too_wide.width = 10000;  // the encoder's own limit is 8191
  EXPECT_NE(refusal(options, too_wide).find("mpeg4 does not open for 10000x48"), std::string::npos);
  const auto plan = plan_for(options, yuv_source());
  plan->target.width = too_wide.width;
  try {
    reopen_encoder(options, *plan, false);
    FAIL() << "it opened";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kEncoder) << error.what();
    EXPECT_NE(std::string(error.what()).find("mpeg4 does not open again for 10000x48"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace framelane
