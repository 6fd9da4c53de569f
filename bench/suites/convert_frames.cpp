#include "bench/suites/convert_frames.hpp"

#include <fmt/core.h>

#include <cstring>

#include "bench/stage_feed.hpp"
#include "bench/suites/device_code.hpp"
#include "bench/suites/turns.hpp"
#include "kernels/reference.hpp"

namespace framelane::bench {
namespace {

Conversion exact_conversion(int width, int height) {
  Conversion result = conversion(PixelFormat::kBgra, PixelFormat::kYuv444, {"", width, height});
  result.target_color = {.matrix = Matrix::kBt601, .range = Range::kLimited};
  return result;
}

std::size_t row_bytes(const ImageView& image) {
  return plane_row_bytes(image.format, 0, image.width);
}

}  // namespace

const char* name_of(Formula formula) { return formula == Formula::kExact ? "exact" : "classic"; }

void convert_classic(const ConstImageView& source, const ImageView& target) {
  for (int y = 0; y < source.height; ++y) {
    const std::uint8_t* from = source.row(0, y);
    std::uint8_t* to = target.row(0, y);
    for (int x = 0; x < source.width; ++x, from += 4, to += 3) {
      const Yuv yuv = classic_yuv(from[2], from[1], from[0]);
      to[0] = yuv.y;
      to[1] = yuv.u;
      to[2] = yuv.v;
    }
  }
}

ConvertFrames::ConvertFrames(int width, int height, int count)
    : conversion(exact_conversion(width, height)),
      frames_(make_frames(sources_, conversion.source, {"", width, height}, 1)),
      expected_{make_target(), make_target()} {
  const ImageView first = frames_[0].image;
  while (static_cast<int>(frames_.size()) < count) {
    const int moved = static_cast<int>(frames_.size());
    PooledImage frame = allocate_image(sources_, conversion.source, width, height);
    for (int y = 0; y < height; ++y) {
      std::memcpy(frame.image.row(0, y), first.row(0, (y + moved) % height), row_bytes(first));
    }
    frames_.push_back(std::move(frame));
  }
  convert_reference(conversion, source(0), expected_[0].image);
  convert_classic(source(0), expected_[1].image);
}

ConstImageView ConvertFrames::source(int frame) const {
  return as_const(frames_[static_cast<std::size_t>(frame)].image);
}

double ConvertFrames::source_bytes() const {
  return static_cast<double>(
      image_bytes(conversion.source, {"", conversion.width, conversion.height}));
}
double ConvertFrames::target_bytes() const {
  return static_cast<double>(
      image_bytes(conversion.target, {"", conversion.width, conversion.height}));
}

std::string ConvertFrames::compare(Formula formula, int frame, const ImageView& got) const {
  const ImageView& expected = expected_[formula == Formula::kExact ? 0 : 1].image;
  for (int y = 0; y < conversion.height; ++y) {
    const std::string difference = first_difference(
        expected.row(0, (y + frame) % conversion.height), got.row(0, y), row_bytes(expected));
    if (!difference.empty()) return fmt::format("frame {}, row {}, {}", frame, y, difference);
  }
  return {};
}

double ConvertFrames::classic_error_share() const {
  std::size_t wrong = 0;
  for (int y = 0; y < conversion.height; ++y) {
    const std::uint8_t* exact = expected_[0].image.row(0, y);
    const std::uint8_t* classic = expected_[1].image.row(0, y);
    for (std::size_t i = 0; i < row_bytes(expected_[0].image); ++i) wrong += exact[i] != classic[i];
  }
  return static_cast<double>(wrong) / target_bytes();
}

void spoil(const ImageView& target) {
  // Neither formula gives it: luma and chroma in limited range are 16 and more.
  for (int y = 0; y < target.height; ++y) std::memset(target.row(0, y), 0, row_bytes(target));
}

}  // namespace framelane::bench
