#pragma once

#include <array>

#include "kernels/cuda/group_tables.cuh"
#include "kernels/cuda/scale_tile.cuh"

// The lines that ScaleTile filters: what they are made of, and what their values may be wrong by.

namespace framelane::cuda {

/// What a line's numbers are before they are filtered: the largest one, what it may be wrong by,
/// and what has been taken off all of them.
struct LineSize {
  double largest, error, middle;
};

/// The lines of RGB: luma, and the differences of two colours to it, of which chroma are multiples.
struct RgbLines {
  // Of a pixel's bytes, as in RgbTileSource.
  std::array<int, 3> order{};
  std::array<float, 3> luma{};
  float middle = 0;
  std::array<float, 2> difference{};
  // For each line: the channel that it becomes, as how many times its value.
  std::array<LineSize, 3> sizes{};
  std::array<std::size_t, 3> channels{};
  std::array<double, 3> factors{};

  /// `order`: the channels in the order of memory. False if chroma are no such multiples.
  bool find(const ScaledSamples& samples, std::array<int, 3> order_in_memory, bool has_chroma);
};

/// How a line of `group` becomes a channel of the target: `factor` times its value.
TileOutput make_output(const GroupTables& group, const LinearForm& form, std::size_t channel,
                       const LineSize& line, double factor);

}  // namespace framelane::cuda
