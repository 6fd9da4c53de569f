#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/pipeline/feed/raw_encoder.hpp"
#include "tests/pipeline/stage/cuda/cuda_feed_fixture.hpp"
#include "tests/temp_folder.hpp"

namespace framelane::testing {

/// Covers the left half of every picture with white, of which the clip's right half has some at
/// most: a byte of the clip's left half would show. The encodes write raw video into files of this
/// folder.
inline void mask_left_half(FeedOptions& options, const TempFolder& folder) {
  options.input.mask.push_back(
      {.polygon = {{0, 0}, {0.5, 0}, {0.5, 1}, {0, 1}}, .color = {255, 255, 255}});
  for (EncodeOptions& encode : options.encodes) encode.codecs = {raw_encoder()};
  for (OutputOptions& output : options.outputs) {
    output.url = folder / (output.name + ".yuv");
    output.format = "rawvideo";
  }
}

/// Expects that so many frames were written and all of them are masked so.
inline void expect_left_half_masked(const OutputOptions& output, std::uint64_t frames) {
  std::ifstream file(output.url, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  constexpr std::size_t kPixels = kClipWidth * kClipHeight;
  const std::size_t frame_bytes = bytes.size() / frames;
  ASSERT_GE(frame_bytes, kPixels * 3 / 2) << output.name;
  const char white = static_cast<char>(output.name == "full" ? 255 : 235);
  for (std::size_t frame = 0; frame + frame_bytes <= bytes.size(); frame += frame_bytes) {
    bool right_is_white = true;
    for (std::size_t row = frame; row < frame + kPixels; row += kClipWidth) {
      const std::string_view left(&bytes[row], kClipWidth / 2);
      const std::string_view right(&bytes[row + kClipWidth / 2], kClipWidth / 2);
      ASSERT_EQ(left.find_first_not_of(white), left.npos) << output.name << ", frame " << frame;
      right_is_white = right_is_white && right.find_first_not_of(white) == right.npos;
    }
    ASSERT_FALSE(right_is_white) << output.name << ", frame " << frame;
  }
}

}  // namespace framelane::testing
