#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/channel.hpp"
#include "kernels/color_spec.hpp"
#include "kernels/image_view.hpp"
#include "kernels/scaling.hpp"

namespace framelane {

/// A part of a picture that is not to be seen.
struct MaskShape {
  enum class Style : std::uint8_t {
    kFill,
    kPixelate,  ///< shows means of blocks
  };
  struct Point {
    double x = 0;
    double y = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };

  /// In fractions of the picture's width and height, which are rounded to millionths. At least
  /// three points; no two edges cross.
  std::vector<Point> polygon;
  Style style = Style::kFill;
  std::array<std::uint8_t, 3> color{};  ///< of kFill: R'G'B' in full range

  friend bool operator==(const MaskShape&, const MaskShape&) = default;
};

/// What shapes cover in pictures of one size, format and colour.
///
/// A sample of luma, or a pixel of RGB, is covered if its centre lies in the polygon; a sample of
/// subsampled chroma if any of its luma is. kPixelate divides the polygon's bounding box into
/// square blocks, from its left upper corner on (rounded down to even numbers); their side is a
/// sixteenth of the box's width in pixels, rounded up to an even number, and at least 2. A covered
/// sample is the mean, rounded half up, of all samples of its block that lie in the picture. Shapes
/// are applied one after the other. Alpha stays as it is.
class PictureMask {
 public:
  /// Samples [begin, end) of a row.
  struct Run {
    int row, begin, end;
  };
  /// What one shape covers in one channel.
  struct Cover {
    std::size_t channel;
    std::vector<Run> runs;  ///< by rows, from left to right
    std::uint8_t code;
    int block_width = 0;  ///< 0: filled with `code`
    int block_height = 0;
    int left = 0;  ///< where the blocks begin
    int top = 0;
    int band_height = 0;  ///< channels take turns after so many rows, from `top` on

    /// Where the block begins that this column or row lies in.
    int block_left(int column) const { return column - (column - left) % block_width; }
    int block_top(int row) const { return row - (row - top) % block_height; }
  };
  /// More blocks than one shape has side by side: 16, and those that its box begins or ends in.
  static constexpr int kMostBlocks = 20;

  PictureMask(std::span<const MaskShape> shapes, PixelFormat format, const PictureSize& size,
              const ColorSpec& color);

  /// Covers a picture of this size and format. Any number of threads, each with its own picture.
  void apply(const ImageView& image) const;
  /// The first shape that covers nothing because it lies between samples; -1: there is none.
  int first_without_cover() const { return first_without_cover_; }
  PixelFormat format() const { return format_; }
  /// The rows of pixels that apply() reads or writes; empty: none.
  const RowRange& rows() const { return rows_; }
  /// One after the other: each shape's, by channels.
  std::span<const Cover> covers() const { return covers_; }

 private:
  const PixelFormat format_;
  std::vector<Cover> covers_;
  int first_without_cover_ = -1;
  RowRange rows_;
};

inline constexpr std::size_t kMostPolygonPoints = 1000;

/// Why no picture can be masked with this polygon, as the end of a sentence: "has fewer than three
/// points"; null if it can.
const char* why_no_polygon(std::span<const MaskShape::Point> polygon);

}  // namespace framelane
