#include "tests/pipeline/encode/encode_plans.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "pipeline/base/failure.hpp"

namespace framelane::testing {

FrameFormat bgra_source() {
  return {.layout = PixelFormat::kBgra,
          .width = 64,
          .height = 48,
          .color = {.matrix = Matrix::kRgb, .range = Range::kFull},
          .time_base = {1, 25},
          .frame_rate = {25, 1}};
}

FrameFormat yuv_source(PixelFormat layout, Range range) {
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

}  // namespace framelane::testing
