#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/scaling.hpp"

namespace framelane {

/// convert.size
struct SizeOption {
  /// Of `width` or `height`, not of both: what keeps the picture's shape, as an even number.
  static constexpr int kKeepsShape = -2;

  int width = 0;
  int height = 0;
  int percent = 0;  ///< of both sides, as even numbers; 0: `width` and `height` say

  friend bool operator==(const SizeOption&, const SizeOption&) = default;
};

/// How a picture gets into a size of another shape.
enum class Fit : std::uint8_t {
  kStretch,  ///< its pixels change their shape; players show it as before
  kContain,  ///< with bars beside it
  kCover,    ///< what goes beyond is cut off
};

/// convert.flip: which sides of a picture change places.
enum class Flip : std::uint8_t {
  kNone,
  kHorizontal,  ///< left and right
  kVertical,    ///< top and bottom
};

/// convert.crop, rotate, flip, size, fit, filter and background, in the order in which they apply.
struct PictureOptions {
  std::optional<Rect> crop{};
  int rotation = 0;  ///< degrees, clockwise: 0, 90, 180 or 270
  Flip flip = Flip::kNone;
  std::optional<SizeOption> size{};
  Fit fit = Fit::kStretch;
  ScaleFilter filter = ScaleFilter::kBicubic;
  std::array<std::uint8_t, 3> background{};  ///< R'G'B'

  friend bool operator==(const PictureOptions&, const PictureOptions&) = default;
};

}  // namespace framelane
