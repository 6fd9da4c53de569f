#include "bench/product/convert_frames.hpp"

#include <fmt/core.h>

#include <cstring>

#include "bench/harness/device_code.hpp"
#include "bench/harness/turns.hpp"
#include "bench/product/stage_feed.hpp"

namespace framelane::bench {
namespace {

Conversion exact_conversion(int width, int height) {
  Conversion result = conversion(PixelFormat::kBgra, PixelFormat::kYuv444, {"", width, height});
  result.target_color = {.matrix = Matrix::kBt601, .range = Range::kLimited};
  return result;
}

PooledImage make_source(FramePool& pool, const Conversion& conversion, int count) {
  const int height = conversion.height;
  const int rows = height + count - 1;
  PooledImage frames =
      std::move(make_frames(pool, conversion.source, {"", conversion.width, rows}, 1)[0]);
  const std::size_t bytes = plane_row_bytes(conversion.source, 0, conversion.width);
  for (int y = height; y < rows; ++y) {
    std::memcpy(frames.image.row(0, y), frames.image.row(0, y - height), bytes);
  }
  return frames;
}

PlainImage classic_result(const Conversion& conversion, const ConstImageView& source) {
  PlainImage result(conversion.target, conversion.width, conversion.height);
  convert_classic(source, result.image);
  return result;
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
      frames_(make_source(sources_, conversion, count)),
      exact_(reference_result(conversion, source(0))),
      classic_(classic_result(conversion, source(0))) {}

ConstImageView ConvertFrames::source(int frame) const {
  ConstImageView view = as_const(frames_.image);
  view.height = conversion.height;
  view.planes[0].data += frame * view.planes[0].pitch;
  return view;
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
  for (int y = 0; y < conversion.height; ++y) {
    std::string difference = compare_row(formula, frame, y, got);
    if (!difference.empty()) return difference;
  }
  return {};
}

std::string ConvertFrames::compare_row(Formula formula, int frame, int row,
                                       const ImageView& got) const {
  const ImageView& expected = (formula == Formula::kExact ? exact_ : classic_).image;
  const std::string difference =
      first_difference(expected.row(0, (row + frame) % conversion.height), got.row(0, row),
                       plane_row_bytes(conversion.target, 0, conversion.width));
  return difference.empty() ? "" : fmt::format("frame {}, row {}, {}", frame, row, difference);
}

double ConvertFrames::classic_error_share() const {
  return accuracy_of(as_const(exact_.image), as_const(classic_.image)).share_off;
}

}  // namespace framelane::bench
