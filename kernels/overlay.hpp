#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/color_spec.hpp"
#include "kernels/image_view.hpp"
#include "kernels/scaling.hpp"

namespace framelane {

/// A picture with straight alpha: R'G'B' in full range and alpha, four bytes a pixel, rows without
/// padding.
struct RgbaPicture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels{};

  std::uint8_t* at(int x, int y) {
    return &pixels[4 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                        static_cast<std::size_t>(x))];
  }
  const std::uint8_t* at(int x, int y) const { return const_cast<RgbaPicture*>(this)->at(x, y); }
};

/// What is drawn over a part of a frame, in the frame's format and colour: a code c and a weight w
/// for each byte of that part. A byte d of the frame becomes (w c + (255 - w) d) / 255, rounded to
/// the nearest (there are no ties, since 255 is odd). A weight of 0 leaves a byte as it was, such
/// as the alpha of BGRA. Immutable; any thread.
class Overlay {
 public:
  /// One plane: `rows` rows of `row_bytes` bytes from row `top` and byte `left` of the frame's on.
  /// Codes and weights begin at these offsets into bytes(), and have no padding.
  struct Plane {
    int left = 0;
    int top = 0;
    int row_bytes = 0;
    int rows = 0;
    std::size_t codes = 0;
    std::size_t weights = 0;
  };

  /// `picture` over a frame of this size, format and colour, with its left upper corner at x and y,
  /// which are rounded down to even numbers. What lies outside the frame is left out. A sample of
  /// subsampled chroma has the mean weight of its pixels, and their mean colour by weight; means
  /// are rounded half up, and colours are rounded to codes once.
  Overlay(const RgbaPicture& picture, int x, int y, const PictureSize& frame, PixelFormat format,
          const ColorSpec& color);

  PixelFormat format() const { return format_; }
  /// Those of the format; all empty if nothing lies in the frame.
  const std::array<Plane, kMaxPlanes>& planes() const { return planes_; }
  /// What planes() describe.
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  PixelFormat format_;
  std::array<Plane, kMaxPlanes> planes_{};
  std::vector<std::uint8_t> bytes_;
};

/// What one frame gets, in this order.
using Overlays = std::vector<std::shared_ptr<const Overlay>>;

/// The rows of `plane` that belong to rows [row_begin, row_end) of a frame's pixels, as rows of the
/// overlay's plane. Begin and end are even, or the frame's height.
RowRange overlay_rows(const Overlay& overlay, int plane, int row_begin, int row_end);

/// Draws `overlay` over rows [row_begin, row_end) of a frame of the size and format that it was
/// made for. Any thread, each with its own rows.
void blend(const Overlay& overlay, const ImageView& frame, int row_begin, int row_end);
/// The same, byte by byte.
void blend_reference(const Overlay& overlay, const ImageView& frame, int row_begin, int row_end);

}  // namespace framelane
