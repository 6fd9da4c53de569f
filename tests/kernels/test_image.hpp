#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"

namespace framelane {

inline constexpr ColorSpec kRgbFull{Matrix::kRgb, Range::kFull};

/// Names the tests whose parameter is a format.
struct FormatName {
  std::string operator()(const auto& test) const { return std::string(info(test.param).name); }
};

/// How a test image is laid out in memory.
struct TestLayout {
  int padding = 0;         ///< bytes after each row
  bool bottom_up = false;  ///< negative pitch
  int guard = 0;           ///< bytes before and after each plane; 0 if AddressSanitizer checks that
};

/// A frame that owns its planes, each in its own allocation, and knows which bytes are pixels. All
/// other bytes have a pattern, which must not change.
class TestImage {
 public:
  TestImage(PixelFormat format, int width, int height, TestLayout layout = {});

  ImageView view();
  ConstImageView const_view() const;

  void fill_random(std::mt19937& random);
  void fill_padding(std::uint8_t value);

  /// The bytes that are pixels, row by row and plane by plane, without padding.
  std::vector<std::uint8_t> pixels() const;
  /// True if all bytes that are not pixels still have the pattern.
  bool padding_untouched() const;

 private:
  struct Plane {
    std::size_t row_bytes = 0;
    int rows = 0;
    std::vector<std::uint8_t> bytes;
  };

  std::ptrdiff_t row_offset(const Plane& plane, int y) const;
  template <typename Visit>
  void visit_padding(Visit visit);

  PixelFormat format_;
  int width_;
  int height_;
  TestLayout layout_;
  std::vector<Plane> planes_;
};

/// For failure messages: "bgra rgb full left -> nv12 bt709 limited left, 17x9".
std::string describe(const Conversion& conversion);

inline constexpr PixelFormat kAllFormats[] = {
    PixelFormat::kBgra,   PixelFormat::kRgba,  PixelFormat::kArgb, PixelFormat::kAbgr,
    PixelFormat::kBgr24,  PixelFormat::kRgb24, PixelFormat::kI420, PixelFormat::kNv12,
    PixelFormat::kI422,   PixelFormat::kYuyv,  PixelFormat::kUyvy, PixelFormat::kI444,
    PixelFormat::kYuv444, PixelFormat::kGray8};
inline constexpr Matrix kYuvMatrices[] = {Matrix::kBt601, Matrix::kBt709, Matrix::kBt2020};
inline constexpr Range kRanges[] = {Range::kLimited, Range::kFull};
inline constexpr Siting kSitings[] = {Siting::kLeft, Siting::kCenter, Siting::kTopLeft};

/// Every ColorSpec that a frame of this format can have: R'G'B' in both ranges, YUV in all
/// combinations.
std::vector<ColorSpec> all_colors(PixelFormat format);

}  // namespace framelane
