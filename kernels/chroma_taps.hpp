#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/color_spec.hpp"

namespace framelane {

/// A one-dimensional filter at one position: `count` samples and their weights, which add up to
/// kScale. Indices are already clamped to the image, because edges repeat the last pixel.
struct Taps {
  static constexpr int kScale = 4;
  std::size_t count;
  std::array<int, 3> index;
  std::array<int, 3> weight;
};

/// Whether a subsampled chroma sample sits on an even luma sample (cosited), along one axis.
/// Otherwise it sits midway between an even luma sample and the next.
inline bool cosited_across(Siting siting) { return siting != Siting::kCenter; }
inline bool cosited_down(Siting siting) { return siting == Siting::kTopLeft; }

/// The sample at `i` alone.
inline Taps identity_taps(int i) { return {1, {i, 0, 0}, {4, 0, 0}}; }

inline Taps two_taps(int i, int weight, int next_weight, int size) {
  return {2, {std::max(i, 0), std::min(i + 1, size - 1), 0}, {weight, next_weight, 0}};
}

/// The subsampled position `i` from `size` full-resolution samples: [1 2 1]/4 or [1 1]/2.
inline Taps downsampling_taps(int i, int size, bool cosited) {
  const int centre = 2 * i;
  if (!cosited) return two_taps(centre, 2, 2, size);
  return {3, {std::max(centre - 1, 0), centre, std::min(centre + 1, size - 1)}, {1, 2, 1}};
}

/// The full-resolution position `i` from `size` subsampled samples, by linear interpolation.
inline Taps interpolating_taps(int i, int size, bool cosited) {
  const bool odd = i % 2 != 0;
  if (cosited) return odd ? two_taps(i / 2, 2, 2, size) : identity_taps(i / 2);
  return odd ? two_taps(i / 2, 3, 1, size) : two_taps(i / 2 - 1, 1, 3, size);
}

}  // namespace framelane
