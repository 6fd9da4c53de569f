#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/pixel_format.hpp"

namespace framelane {

/// One plane in memory: `pitch` is the distance in bytes between the starts of two rows. It is at
/// least the row's own bytes and may be negative for an image stored bottom up.
template <typename Byte>
struct BasicPlane {
  Byte* data = nullptr;
  std::ptrdiff_t pitch = 0;
};

/// Non-owning view of a frame. Width and height are those of the picture in pixels, at least 1;
/// chroma planes are rounded up. Copying a view copies no pixels.
template <typename Byte>
struct BasicImageView {
  PixelFormat format = PixelFormat::kBgra;
  int width = 0;
  int height = 0;
  std::array<BasicPlane<Byte>, kMaxPlanes> planes{};

  Byte* row(int plane, int y) const { return planes[plane].data + y * planes[plane].pitch; }
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

}  // namespace framelane
