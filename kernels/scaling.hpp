#pragma once

#include <array>
#include <cstdint>

#include "kernels/axis_filter.hpp"

namespace framelane {

/// In pixels.
struct PictureSize {
  int width = 0;
  int height = 0;

  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

struct Rect {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  PictureSize size() const { return {width, height}; }
  friend bool operator==(const Rect&, const Rect&) = default;
};

/// How a picture becomes one of another size.
struct Scaling {
  Rect crop;           ///< what is taken of the source
  PictureSize target;  ///< the size of the new picture
  Rect place;          ///< where in it the part taken comes to lie
  ScaleFilter filter = ScaleFilter::kBicubic;
  std::array<std::uint8_t, 3> background{};  ///< around it: R'G'B' in full range

  friend bool operator==(const Scaling&, const Scaling&) = default;
};

}  // namespace framelane
