#pragma once

namespace framelane {

/// The longest side of a picture, in pixels.
inline constexpr int kMaxPictureSide = 16384;

/// How many pixels of a side may become one. With more, weights would not fit (AxisFilter).
inline constexpr int kMostReduction = 64;

}  // namespace framelane
