#pragma once

#include "kernels/channel.hpp"
#include "kernels/cuda/kernel.hpp"
#include "kernels/pixel_format.hpp"

namespace framelane::cuda {

/// One colour channel in memory, as in kernels/channel.hpp. `data` is null if the format has no
/// such channel.
template <typename Byte>
struct Samples2d {
  Byte* data;
  std::ptrdiff_t pitch;
  int step, width, height;

  FRAMELANE_HD Byte& at(int x, int y) const {
    return data[y * pitch + static_cast<std::ptrdiff_t>(x) * step];
  }
};

/// `found` are channels of a picture of this format.
template <typename Byte>
void locate(PixelFormat format, const std::array<BasicChannel<Byte>, 3>& found,
            Samples2d<Byte> (&samples)[3]) {
  for (int i = 0; i < 3; ++i) {
    const auto& channel = found[static_cast<std::size_t>(i)];
    // For gray, channels() returns chroma in host memory, which the GPU cannot read.
    const bool absent = info(format).gray && i > 0;
    samples[i] = {absent ? nullptr : channel.data, channel.pitch, channel.step, channel.width,
                  channel.height};
  }
}

template <typename Byte>
void locate(const BasicImageView<Byte>& view, Samples2d<Byte> (&samples)[3]) {
  locate(view.format, channels(view), samples);
}

/// True if the rows of every plane begin at multiples of `alignment`. Planes that the format does
/// not have do not matter.
template <typename Byte>
bool is_aligned(const BasicImageView<Byte>& view, std::uintptr_t alignment) {
  for (const BasicPlane<Byte>& plane : view.planes) {
    const auto place =
        reinterpret_cast<std::uintptr_t>(plane.data) | static_cast<std::uintptr_t>(plane.pitch);
    if (place % alignment != 0) return false;
  }
  return true;
}

}  // namespace framelane::cuda
