#include "tests/kernels/test_image.hpp"

#include <algorithm>
#include <utility>

namespace framelane {
namespace {

constexpr std::uint8_t kPattern = 0xA5;

}  // namespace

TestImage::TestImage(PixelFormat format, int width, int height, TestLayout layout)
    : format_(format), width_(width), height_(height), layout_(layout) {
  for (int i = 0; i < info(format).plane_count; ++i) {
    Plane plane;
    plane.row_bytes = plane_row_bytes(format, i, width);
    plane.rows = plane_rows(format, i, height);
    const std::size_t pitch = plane.row_bytes + static_cast<std::size_t>(layout.padding);
    // The last row in memory has no padding, as in frames that FFmpeg has cropped.
    const std::size_t size = pitch * static_cast<std::size_t>(plane.rows - 1) + plane.row_bytes;
    plane.bytes.assign(size + 2 * static_cast<std::size_t>(layout.guard), kPattern);
    plane.bytes.shrink_to_fit();
    planes_.push_back(std::move(plane));
  }
}

std::ptrdiff_t TestImage::row_offset(const Plane& plane, int y) const {
  const int row = layout_.bottom_up ? plane.rows - 1 - y : y;
  const auto pitch = static_cast<std::ptrdiff_t>(plane.row_bytes) + layout_.padding;
  return layout_.guard + row * pitch;
}

ImageView TestImage::view() {
  ImageView view{format_, width_, height_, {}};
  for (std::size_t i = 0; i < planes_.size(); ++i) {
    Plane& plane = planes_[i];
    const std::ptrdiff_t first = row_offset(plane, 0);
    const auto pitch = static_cast<std::ptrdiff_t>(plane.row_bytes) + layout_.padding;
    view.planes[i] = {plane.bytes.data() + first, layout_.bottom_up ? -pitch : pitch};
  }
  return view;
}

ConstImageView TestImage::const_view() const {
  return as_const(const_cast<TestImage*>(this)->view());
}

void TestImage::fill_random(std::mt19937& random) {
  for (Plane& plane : planes_) {
    for (int y = 0; y < plane.rows; ++y) {
      std::uint8_t* row = plane.bytes.data() + row_offset(plane, y);
      for (std::size_t x = 0; x < plane.row_bytes; ++x) {
        const std::uint32_t value = random();
        // Extremes are frequent, because clamping and rounding go wrong there.
        row[x] = (value & 0x300) == 0 ? ((value & 0x400) != 0 ? 255 : 0)
                                      : static_cast<std::uint8_t>(value);
      }
    }
  }
}

template <typename Visit>
void TestImage::visit_padding(Visit visit) {
  for (Plane& plane : planes_) {
    std::vector<bool> is_pixel(plane.bytes.size());
    for (int y = 0; y < plane.rows; ++y) {
      std::fill_n(is_pixel.begin() + row_offset(plane, y), plane.row_bytes, true);
    }
    for (std::size_t i = 0; i < plane.bytes.size(); ++i) {
      if (!is_pixel[i]) visit(plane.bytes[i]);
    }
  }
}

void TestImage::fill_padding(std::uint8_t value) {
  visit_padding([value](std::uint8_t& byte) { byte = value; });
}

bool TestImage::padding_untouched() const {
  bool untouched = true;
  const_cast<TestImage*>(this)->visit_padding(
      [&untouched](const std::uint8_t& byte) { untouched = untouched && byte == kPattern; });
  return untouched;
}

std::vector<std::uint8_t> TestImage::pixels() const {
  std::vector<std::uint8_t> result;
  for (const Plane& plane : planes_) {
    for (int y = 0; y < plane.rows; ++y) {
      const auto row = plane.bytes.begin() + row_offset(plane, y);
      result.insert(result.end(), row, row + static_cast<std::ptrdiff_t>(plane.row_bytes));
    }
  }
  return result;
}

std::string describe(const Conversion& conversion) {
  return std::string(info(conversion.source).name) + " " + describe(conversion.source_color) +
         " -> " + std::string(info(conversion.target).name) + " " +
         describe(conversion.target_color) + ", " + std::to_string(conversion.width) + "x" +
         std::to_string(conversion.height);
}

std::vector<ColorSpec> all_colors(PixelFormat format) {
  std::vector<ColorSpec> colors;
  for (const Range range : kRanges) {
    if (info(format).rgb) {
      colors.push_back({Matrix::kRgb, range});
      continue;
    }
    for (const Matrix matrix : kYuvMatrices) {
      for (const Siting siting : kSitings) colors.push_back({matrix, range, siting});
    }
  }
  return colors;
}

}  // namespace framelane
