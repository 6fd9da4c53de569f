// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/encode/encode_plan.hpp"

#include <gtest/gtest.h>

extern "C" {
#include <libavutil/opt.h>
}

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "pipeline/av/av_color.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/base/processors.hpp"
#include "pipeline/encode/target_choice.hpp"
#include "tests/pipeline/encode/encode_plans.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

TEST(EncodePlanTest, TagsMatchWhatWasApplied) {
  EncodeOptions options = encode_with({{"libx264"}});
  options.color.matrix = Matrix::kBt2020;
  options.color.range = Range::kFull;
  const auto plan = plan_for(options, bgra_source());
  const AVCodecParameters& tags = *plan->media->video.parameters;
  EXPECT_EQ(tags.color_space, AVCOL_SPC_BT2020_NCL);
  EXPECT_EQ(tags.color_range, AVCOL_RANGE_JPEG);
  EXPECT_EQ(tags.chroma_location, AVCHROMA_LOC_LEFT);
}

class EncodePlanTagsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EncodePlanTagsTest, OfTheEncoderAndItsStreamAreThoseOfThePixels) {
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

INSTANTIATE_TEST_SUITE_P(Codecs, EncodePlanTagsTest,
                         ::testing::Values("libx264", "libx265", "mjpeg", "mpeg4", "mpeg2video",
                                           "libvpx-vp9", "libvpx", "ffv1", "rawvideo"));

TEST(EncodePlanTest, FirstAvailableCandidateIsUsed) {
  const auto plan =
      plan_for(encode_with({{"no_such_encoder"}, {"h264_nvenc"}, {"libx264"}}), yuv_source());
  EXPECT_EQ(plan->codec.name, "libx264");
}

TEST(EncodePlanTest, AnEncoderOfDeviceMemoryAloneIsPassedOverAndNamed) {
  if (avcodec_find_encoder_by_name("h264_vaapi") == nullptr) GTEST_SKIP() << "FFmpeg without VAAPI";
  EXPECT_EQ(plan_for(encode_with({{"h264_vaapi"}, {"mjpeg"}}), yuv_source())->codec.name, "mjpeg");
  const std::string why = refusal(encode_with({{"h264_vaapi"}}), yuv_source());
  EXPECT_NE(why.find("h264_vaapi takes frames in a device's memory alone"), std::string::npos)
      << why;
}

TEST(EncodePlanTest, HardwareThatIsNotThereIsNamedWithTheReason) {
  if (avcodec_find_encoder_by_name("h264_v4l2m2m") == nullptr) GTEST_SKIP() << "FFmpeg without it";
  const std::string why =
      refusal(encode_with({{"h264_v4l2m2m", {{"num_output_buffers", "4"}}}}), yuv_source());
  EXPECT_NE(why.find("h264_v4l2m2m does not open here: "), std::string::npos) << why;
}

TEST(EncodePlanTest, NvencIsThatOfTheFeedsGpuUnlessAnotherIsNamed) {
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

TEST(EncodePlanTest, NvencKnowsTheOptionThatChoosesItsGpu) {
  const AVCodec* nvenc = avcodec_find_encoder_by_name("h264_nvenc");
  if (nvenc == nullptr) GTEST_SKIP() << "FFmpeg without NVENC";
  const AVClass* type = nvenc->priv_class;
  EXPECT_NE(av_opt_find(&type, "gpu", nullptr, 0, AV_OPT_SEARCH_FAKE_OBJ), nullptr);
}

// On a machine without that GPU, the option must not keep the next codec from being tried.
TEST(EncodePlanTest, AGpuThatIsChosenIsNoReasonNotToFallThrough) {
  const EncodeOptions options = encode_with({{"h264_nvenc"}, {"mjpeg"}});
  const auto plan =
      make_encode_plan({.options = options, .source = yuv_source(), .device = "cuda:63"});
  EXPECT_EQ(plan->codec.name, "mjpeg");
}

TEST(EncodePlanTest, NoCandidateLeftNamesThemAll) {
  const std::string why = refusal(encode_with({{"nope"}, {"neither"}}), yuv_source());
  EXPECT_NE(why.find("nope is not in this FFmpeg; neither is not"), std::string::npos) << why;
}

TEST(EncodePlanTest, AnEncoderOfSoundIsNamedAsWhatItIs) {
  const std::string why = refusal(encode_with({{"aac"}}), yuv_source());
  EXPECT_NE(why.find("aac is no video encoder"), std::string::npos) << why;
}

TEST(EncodePlanTest, UnknownOptionIsAnErrorAndNoReasonToFallThrough) {
  const std::string why =
      refusal(encode_with({{"libx264", {{"presett", "fast"}}}, {"mjpeg"}}), yuv_source());
  EXPECT_NE(why.find("libx264 has no option \"presett\""), std::string::npos) << why;
}

TEST(EncodePlanTest, ValueOutOfRangeIsAnError) {
  const std::string why = refusal(encode_with({{"libx264", {{"crf", "banana"}}}}), yuv_source());
  EXPECT_NE(why.find("libx264 rejects crf=banana"), std::string::npos) << why;
}

TEST(EncodePlanTest, WithAGopAnEncoderMakesKeyframesOnlyWhereItIsAsked) {
  EncodeOptions options = encode_with({{"libx264"}});
  options.gop = std::chrono::seconds(2);
  const auto plan = plan_for(options, yuv_source());
  EXPECT_EQ(plan->opened->gop_size, UINT16_MAX);
  std::int64_t forced_idr = 0;
  EXPECT_EQ(av_opt_get_int(plan->opened->priv_data, "forced-idr", 0, &forced_idr), 0);
  EXPECT_EQ(forced_idr, 1);
}

TEST(EncodePlanTest, OptionsOfTheEncoderGoBeforeTheGop) {
  EncodeOptions options = encode_with({{"libx264", {{"g", "12"}, {"forced-idr", "0"}}}});
  options.gop = std::chrono::seconds(2);
  const auto plan = plan_for(options, yuv_source());
  EXPECT_EQ(plan->opened->gop_size, 12);
  std::int64_t forced_idr = 1;
  EXPECT_EQ(av_opt_get_int(plan->opened->priv_data, "forced-idr", 0, &forced_idr), 0);
  EXPECT_EQ(forced_idr, 0);
}

TEST(EncodePlanTest, AnEncoderThatCannotBeAskedForKeyframesCountsFrames) {
  EncodeOptions options = encode_with({{"ffv1"}});
  options.gop = std::chrono::seconds(2);
  EXPECT_EQ(plan_for(options, yuv_source())->opened->gop_size, 50);
}

TEST(EncodePlanTest, InRenditionsAnEncoderThatCountsFramesIsPassedOver) {
  EncodeOptions options = encode_with({{"ffv1"}, {"libx264"}});
  options.gop = std::chrono::seconds(2);
  EXPECT_EQ(plan_for(options, yuv_source())->codec.name, "ffv1");
  EXPECT_EQ(
      make_encode_plan({.options = options, .source = yuv_source(), .rendition = true})->codec.name,
      "libx264");
  options.codecs.pop_back();
  try {
    make_encode_plan({.options = options, .source = yuv_source(), .rendition = true});
    FAIL() << "it opened";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    EXPECT_NE(std::string(error.what()).find("ffv1 cannot be asked for a keyframe and counts"),
              std::string::npos)
        << error.what();
  }
}

TEST(EncodePlanTest, ALiveFeedsEncoderGetsFewThreadsUnlessTheOptionsSay) {
  EncodeOptions options = encode_with({{"libx264"}});
  const auto plan = make_encode_plan({.options = options, .source = yuv_source(), .live = true});
  EXPECT_GE(plan->opened->thread_count, 1);
  EXPECT_LE(plan->opened->thread_count, 4);
  EXPECT_EQ(reopen_encoder(*plan)->thread_count, plan->opened->thread_count);
  EXPECT_EQ(plan_for(options, yuv_source())->opened->thread_count, codec_threads(false));
  options.codecs[0].options = {{"threads", "7"}};
  EXPECT_EQ(make_encode_plan({.options = options, .source = yuv_source(), .live = true})
                ->opened->thread_count,
            7);
}

TEST(EncodePlanTest, OldCodecsCountTimeInFrames) {
  FrameFormat source = yuv_source();
  source.time_base = {1, 90000};
  const auto plan = plan_for(encode_with({{"mpeg4"}}), source);
  EXPECT_EQ(plan->target.time_base.den, 25);
}

TEST(EncodePlanTest, ReopenedEncoderDeliversIntoTheSameFile) {
  const EncodeOptions options = encode_with({{"libx264", {{"preset", "ultrafast"}}}});
  const auto plan = make_encode_plan({.options = options, .source = yuv_source()});
  const EncoderPtr again = reopen_encoder(*plan);
  const AVCodecParameters& before = *plan->media->video.parameters;
  ASSERT_EQ(again->extradata_size, before.extradata_size);
  EXPECT_EQ(std::memcmp(again->extradata, before.extradata,
                        static_cast<std::size_t>(before.extradata_size)),
            0);
}

TEST(EncodePlanTest, AnOddSizeThatAnEncoderRefusesComesWithOneThatItTakes) {
  EncodeOptions options = encode_with({{"libx264"}});
  options.picture.size = SizeOption{853, 479};
  std::string why;
  try {
    plan_for(options, yuv_source());
  } catch (const FeedError& error) {
    why = error.what();
  }
  EXPECT_NE(why.find("libx264 does not open for 853x479 yuv420p"), std::string::npos) << why;
  EXPECT_NE(why.find("set convert.size to 854x480, or to 854x-2"), std::string::npos) << why;
  options.picture.size = SizeOption{854, 480};
  EXPECT_TRUE(plan_for(options, yuv_source())->opened);
  options.codecs = {{"mpeg4"}};
  options.picture.size = SizeOption{853, 479};
  EXPECT_TRUE(plan_for(options, yuv_source())->opened);
}

class WholeChromaTest : public ::testing::TestWithParam<const char*> {};

TEST_P(WholeChromaTest, IsWhatTheEncoderNeedsAndAllThatItNeeds) {
  const std::string codec = GetParam();
  for (const PixelFormat format : {PixelFormat::kI420, PixelFormat::kI422, PixelFormat::kI444}) {
    FrameFormat source = yuv_source();
    source.layout = format;
    for (const PictureSize& size : {PictureSize{96, 64}, {95, 64}, {96, 63}, {95, 63}}) {
      EncodeOptions options = encode_with({{codec}});
      options.format = format;
      options.picture.size = SizeOption{size.width, size.height};
      const bool opens = with_whole_chroma(size, format) == size || !needs_whole_chroma(codec);
      try {
        EXPECT_TRUE(plan_for(options, source)->opened);
        EXPECT_TRUE(opens) << codec << ' ' << size.width << 'x' << size.height;
      } catch (const FeedError& error) {
        EXPECT_FALSE(opens) << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, WholeChromaTest, ::testing::Values("libx264", "libx265", "ffv1"));

// Busy hardware, or a replaced driver, refuses with EINVAL what it took before.
TEST(EncodePlanTest, AnEncoderThatDoesNotOpenAgainIsNoMistakeInTheConfiguration) {
  const EncodeOptions options = encode_with({{"mpeg4"}});
  FrameFormat too_wide = yuv_source();
  too_wide.width = 10000;  // the encoder's own limit is 8191
  EXPECT_NE(refusal(options, too_wide).find("mpeg4 does not open for 10000x48"), std::string::npos);
  const auto plan = plan_for(options, yuv_source());
  plan->target.width = too_wide.width;
  try {
    reopen_encoder(*plan);
    FAIL() << "it opened";
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kEncoder) << error.what();
    EXPECT_NE(std::string(error.what()).find("mpeg4 does not open again for 10000x48"),
              std::string::npos)
        << error.what();
  }
}

TEST(FrameFormatTest, PixelsOfAnUnknownShapeAreEqualToSquareOnes) {
  FrameFormat unknown = yuv_source();
  FrameFormat square = unknown;
  FrameFormat wide = unknown;
  unknown.sample_aspect_ratio = {0, 1};
  square.sample_aspect_ratio = {1, 1};
  wide.sample_aspect_ratio = {16, 15};
  EXPECT_EQ(unknown, square);
  EXPECT_NE(unknown, wide);
  EXPECT_NE(square, wide);
}

TEST(NvencSessionTest, ARefusedOneIsToldFromOtherFailures) {
  for (const char* refused : {"OpenEncodeSessionEx failed: out of memory (10): (no details)",
                              "OpenEncodeSessionEx failed: incompatible client key (21): "}) {
    EXPECT_TRUE(NvencSession::refused(refused)) << refused;
  }
  for (const char* other : {"OpenEncodeSessionEx failed: unsupported device (2): (no details)",
                            "Cannot load libcuda.so.1", "InitializeEncoder failed: (10)", ""}) {
    EXPECT_FALSE(NvencSession::refused(other)) << other;
  }
}

}  // namespace
}  // namespace framelane
