#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/image_view.hpp"

namespace framelane {

/// One colour channel of a frame, in any layout: the sample in column x and row y of the channel's
/// own grid is data[y * pitch + x * step]. Pitch and step are in bytes.
template <typename Byte>
struct BasicChannel {
  Byte* data = nullptr;
  std::ptrdiff_t pitch = 0;
  int step = 0;
  int width = 0;
  int height = 0;
  bool half_width = false;
  bool half_height = false;

  Byte& at(int x, int y) const { return data[y * pitch + static_cast<std::ptrdiff_t>(x) * step]; }
};

using Channel = BasicChannel<std::uint8_t>;
using ConstChannel = BasicChannel<const std::uint8_t>;

/// The code of U and V where there is no colour, in either range.
inline constexpr std::uint8_t kNeutralChroma = 128;

/// The channels R, G, B or Y, U, V of a view. Gray has no chroma: as a source its U and V read as
/// 128 at full resolution, as a target they have no data.
std::array<ConstChannel, 3> channels(const ConstImageView& view);
std::array<Channel, 3> channels(const ImageView& view);

}  // namespace framelane
