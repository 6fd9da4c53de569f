// Not built for ThreadSanitizer: what it tests has one thread.
#include "pipeline/encode/target_choice.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/pipeline/encode/encode_plans.hpp"

namespace framelane {
namespace {

using namespace testing;  // of framelane

TEST(TargetChoiceTest, TakesTheSourcesOwnFormatWhereItCan) {
  const auto plan = plan_for(encode_with({{"libx264"}}), yuv_source());
  EXPECT_TRUE(is_identity(conversion_between(yuv_source(), plan->target)));
}

TEST(TargetChoiceTest, RgbBecomesNv12InBt709Limited) {
  const auto plan = plan_for(encode_with({{"libx264"}}), bgra_source());
  EXPECT_EQ(plan->target.layout, PixelFormat::kNv12);
  EXPECT_EQ(plan->target.color.matrix, Matrix::kBt709);
  EXPECT_EQ(plan->target.color.range, Range::kLimited);
  EXPECT_EQ(plan->target.color.siting, Siting::kLeft);
}

// A decoder may find such a size in a stream; a configured one is refused earlier.
TEST(TargetChoiceTest, ASizeThatNoConversionTakesIsAFaultThatNamesIt) {
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

TEST(TargetChoiceTest, EncoderWithoutNv12GetsI420) {
  const auto plan = plan_for(encode_with({{"mpeg4"}}), bgra_source());
  EXPECT_EQ(plan->target.layout, PixelFormat::kI420);
}

TEST(TargetChoiceTest, PackedYuvKeepsItsChromaResolution) {
  const auto plan = plan_for(encode_with({{"libx264"}}), yuv_source(PixelFormat::kYuyv));
  EXPECT_EQ(plan->target.layout, PixelFormat::kI422);
}

// JPEG readers assume one colour: BT.601, full range, chroma in the middle.
TEST(TargetChoiceTest, JpegGetsTheColourThatItsReadersTakeItFor) {
  const ColorSpec color = plan_for(encode_with({{"mjpeg"}}), bgra_source())->target.color;
  EXPECT_EQ(color.matrix, Matrix::kBt601);
  EXPECT_EQ(color.range, Range::kFull);
  EXPECT_EQ(color.siting, Siting::kCenter);
}

TEST(TargetChoiceTest, JpegOfYuvKeepsItsChromaWhereItIs) {
  FrameFormat source = yuv_source();
  source.color.matrix = Matrix::kBt709;
  const ColorSpec color = plan_for(encode_with({{"mjpeg"}}), source)->target.color;
  EXPECT_EQ(color.matrix, Matrix::kBt601);
  EXPECT_EQ(color.range, Range::kFull);
  EXPECT_EQ(color.siting, Siting::kLeft);
}

TEST(TargetChoiceTest, JpegOfJpegIsPassedOn) {
  FrameFormat source = yuv_source(PixelFormat::kI422, Range::kFull);
  source.color.siting = Siting::kCenter;
  const auto plan = plan_for(encode_with({{"mjpeg"}}), source);
  EXPECT_TRUE(is_identity(conversion_between(source, plan->target)));
}

TEST(TargetChoiceTest, AStreamThatCannotNameItsColourGetsWhatAnUntaggedOneMeans) {
  FrameFormat source = yuv_source(PixelFormat::kI420, Range::kFull);
  source.color.matrix = Matrix::kBt709;
  const ColorSpec small = plan_for(encode_with({{"mpeg4"}}), source)->target.color;
  EXPECT_EQ(small.matrix, Matrix::kBt601);
  EXPECT_EQ(small.range, Range::kLimited);
  source.width = 1280;
  source.height = 720;
  EXPECT_EQ(plan_for(encode_with({{"mpeg4"}}), source)->target.color.matrix, Matrix::kBt709);
}

TEST(TargetChoiceTest, FullRangeInMpeg2IsRefused) {
  EncodeOptions options = encode_with({{"mpeg2video"}});
  options.color.range = Range::kFull;
  const std::string why = refusal(options, yuv_source());
  EXPECT_NE(why.find("mpeg2video has no full range"), std::string::npos) << why;
  EXPECT_EQ(plan_for(encode_with({{"mpeg2video"}}), yuv_source(PixelFormat::kI420, Range::kFull))
                ->target.color.range,
            Range::kLimited);
}

TEST(TargetChoiceTest, RawVideoPassesRgbOn) {
  const auto plan = plan_for(encode_with({{"rawvideo"}}), bgra_source());
  EXPECT_TRUE(is_identity(conversion_between(bgra_source(), plan->target)));
}

TEST(TargetChoiceTest, MatrixForRgbMeansYuvEvenWhereTheEncoderTakesRgb) {
  EncodeOptions options = encode_with({{"rawvideo"}});
  options.color.matrix = Matrix::kBt709;
  EXPECT_FALSE(info(plan_for(options, bgra_source())->target.layout).rgb);
}

TEST(TargetChoiceTest, FormatTheEncoderDoesNotTakeNamesThoseItTakes) {
  EncodeOptions options = encode_with({{"libx265"}});
  options.format = PixelFormat::kNv12;
  const std::string why = refusal(options, bgra_source());
  EXPECT_NE(why.find("libx265 does not take nv12; it takes yuv420p"), std::string::npos) << why;
}

TEST(TargetChoiceTest, ChangingTheSitingIsRefused) {
  EncodeOptions options = encode_with({{"libx264"}});
  options.color.siting = Siting::kCenter;
  EXPECT_NE(refusal(options, yuv_source()), "");
}

}  // namespace
}  // namespace framelane
