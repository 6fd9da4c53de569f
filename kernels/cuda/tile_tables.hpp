#pragma once

#include <cstdint>
#include <vector>

#include "kernels/axis_floats.hpp"

// An axis' weights in the order in which a GPU's tiles need them (kernels/cuda/scale_tile.cuh).

namespace framelane {

/// Weights across, of groups of four samples of the source.
struct TileAcrossTable {
  int quads = 0;               ///< groups for each sample of the target
  std::vector<float> weights;  ///< [quad][sample of the target][4]

  explicit TileAcrossTable(const AxisFloats& axis);
};

/// Weights down, for each row of the source.
struct TileDownTable {
  static constexpr int kMostSlots = 6;
  /// So many rows behind the last one have no part in anything.
  static constexpr int kRowsBeyond = 4;

  /// A row of the source: its part in the target's row y is weights[y % slots].
  struct alignas(16) Row {
    float weights[kMostSlots];
    std::int32_t done;  ///< rows of the target that end with this one or before
  };

  int slots = 0;  ///< rows of the target that a row of the source may be part of
  /// For each row of the target: its last one of the source, or a later one, so that they end
  /// at regular distances. Those at the lower edge, which share the source's last row, end beyond
  /// it.
  std::vector<std::int32_t> last;
  std::vector<Row> rows;  ///< of the source, and beyond it

  /// The weights are not set yet.
  TileDownTable(const AxisFloats& axis, int source_rows);

  /// Sets the weights, multiplied by `unit`, for so many slots: at least `slots`.
  void set_weights(const AxisFloats& axis, int slots_used, float unit);
  /// The most rows of the target that end within so many rows of the source.
  int most_rows(int source_rows) const;
};

}  // namespace framelane
