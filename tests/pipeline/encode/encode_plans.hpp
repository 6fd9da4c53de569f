#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/encode/encode_plan.hpp"

namespace framelane::testing {

inline FrameFormat bgra_source() {
  return {.layout = PixelFormat::kBgra,
          .width = 64,
          .height = 48,
          .color = {.matrix = Matrix::kRgb, .range = Range::kFull},
          .time_base = {1, 25},
          .frame_rate = {25, 1}};
}

inline FrameFormat yuv_source(PixelFormat layout = PixelFormat::kI420,
                              Range range = Range::kLimited) {
  FrameFormat format = bgra_source();
  format.layout = layout;
  format.color = {.matrix = Matrix::kBt601, .range = range};
  return format;
}

inline EncodeOptions encode_with(std::vector<CodecCandidate> codecs) {
  EncodeOptions options;
  options.name = "live";
  options.codecs = std::move(codecs);
  return options;
}

inline std::shared_ptr<EncodePlan> plan_for(const EncodeOptions& options,
                                            const FrameFormat& source) {
  return make_encode_plan({.options = options, .source = source});
}

/// The reason why no plan can be made; empty if one can be made. Expects that the configuration is
/// at fault.
inline std::string refusal(const EncodeOptions& options, const FrameFormat& source) {
  try {
    plan_for(options, source);
  } catch (const FeedError& error) {
    EXPECT_EQ(error.code(), FeedFault::kConfiguration);
    return error.what();
  }
  return "";
}

}  // namespace framelane::testing
