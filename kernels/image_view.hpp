#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/pixel_format.hpp"

namespace framelane {

/// One plane in memory. `pitch` is the distance in bytes from the start of one row to the start of
/// the next: at least the bytes of a row, and negative for an image that is stored bottom up.
template <typename Byte>
struct BasicPlane {
  Byte* data = nullptr;
  std::ptrdiff_t pitch = 0;
};

/// A view of a frame, which owns no pixels. Width and height are those of the picture, in pixels,
/// and at least 1; the sizes of chroma planes are rounded up.
template <typename Byte>
struct BasicImageView {
  PixelFormat format = PixelFormat::kBgra;
  int width = 0;
  int height = 0;
  std::array<BasicPlane<Byte>, kMaxPlanes> planes{};

  Byte* row(int plane, int y) const { return planes[plane].data + y * planes[plane].pitch; }
};

/// Rows [begin, end) of a picture.
struct RowRange {
  int begin = 0;
  int end = 0;

  bool empty() const { return begin >= end; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};

using ImageView = BasicImageView<std::uint8_t>;
using ConstImageView = BasicImageView<const std::uint8_t>;

inline ConstImageView as_const(const ImageView& view) {
  ConstImageView result{view.format, view.width, view.height, {}};
  for (int i = 0; i < kMaxPlanes; ++i) {
    result.planes[i] = {view.planes[i].data, view.planes[i].pitch};
  }
  return result;
}

/// A view to write through. The caller knows that the memory may be written.
inline ImageView as_writable(const ConstImageView& view) {
  ImageView result{view.format, view.width, view.height, {}};
  for (int i = 0; i < kMaxPlanes; ++i) {
    result.planes[i] = {const_cast<std::uint8_t*>(view.planes[i].data), view.planes[i].pitch};
  }
  return result;
}

}  // namespace framelane
