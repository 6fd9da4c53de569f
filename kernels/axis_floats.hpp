#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/scaled_reference.hpp"

// What the fast ways of scaling have in common: weights in floats, and what they may be wrong by.

namespace framelane {

/// Half the distance of floats around 1: the most that one rounding changes, relative to the
/// result.
inline constexpr double kFloatUnit = 0x1p-24;

/// What weights are multiplied by to be whole numbers; 0: nothing, they add up to 1.
struct WholeNumbers {
  std::int64_t across = 0;
  std::int64_t down = 0;

  std::int64_t divisor() const { return across * down; }
};

/// For the channels from `channel` on (0: luma; 1: chroma): whether floats can sum whole numbers
/// instead of fractions. Such sums have no error, and ties, which are common where weights are
/// simple, need no further look.
WholeNumbers whole_numbers(const ScaledSamples& samples, std::size_t channel);

/// An AxisTable's weights in floats.
struct AxisFloats {
  const AxisTable& table;
  std::vector<float> weights;
  double amplitude = 0;  ///< the largest sum of absolute weights

  /// `common`: what they are multiplied by; or 0.
  AxisFloats(const AxisTable& axis, std::int64_t common);

  const float* of(int i) const {
    return weights.data() + static_cast<std::ptrdiff_t>(i) * table.taps();
  }
  std::int32_t first(int i) const { return table.first()[static_cast<std::size_t>(i)]; }
  /// How many samples of the source samples i to i + count - 1 need.
  int span(int i, int count) const { return first(i + count - 1) + table.taps() - first(i); }
};

}  // namespace framelane
