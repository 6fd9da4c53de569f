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

/// How a picture is turned: first its rows become columns or not, and then it is mirrored or not.
struct Orientation {
  bool transposed = false;   ///< what was in column x and row y comes to column y and row x
  bool mirrored = false;     ///< left and right change places
  bool upside_down = false;  ///< top and bottom change places

  PictureSize turned(const PictureSize& size) const {
    return transposed ? PictureSize{size.height, size.width} : size;
  }
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

/// How a picture becomes one of another size or orientation.
struct Scaling {
  Rect crop;           ///< what is taken of the source
  PictureSize target;  ///< the size of the new picture
  Rect place;          ///< where in it the part taken comes to lie
  ScaleFilter filter = ScaleFilter::kBicubic;
  std::array<std::uint8_t, 3> background{};  ///< around it: R'G'B' in full range
  Orientation orientation{};                 ///< the part taken is turned before it is scaled

  friend bool operator==(const Scaling&, const Scaling&) = default;
};

}  // namespace framelane
