#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/scale_constants.cuh"
#include "kernels/cuda/scale_tile.cuh"
#include "kernels/cuda/tile_tables.hpp"
#include "kernels/scaled_reference.hpp"

// What ScaleTile needs to know of the target's grids, and how large its tiles are.

namespace framelane::cuda {

/// One grid of the target, luma or both of chroma, and its tables.
struct GroupTables {
  TermConstants constants;
  std::int64_t divisor;  // of sums of whole numbers; 0: there are none
  TileAcrossTable across;
  TileDownTable down;
  int half_width = 0, half_height = 0;  // of the target: 0 or 1

  GroupTables(const ScaleTerm& term, const WholeNumbers& whole, int source_rows);

  /// Of all tables in device memory.
  std::size_t bytes() const;
  void write(std::uint8_t* to) const;
  /// Where they are, if they begin at `at`, which is set to their end.
  TileGroup view(const std::uint8_t*& at) const;

  int columns() const { return constants.across.table.samples(); }
};

/// The size of a conversion's tiles.
struct TileSize {
  static constexpr int kFewSlots = 4;  // of a reduction with two samples on either side
  static constexpr int kMostSlots = TileDownTable::kMostSlots;  // and with three

  int slots = 0;
  std::array<int, 2> columns{};    ///< of each grid
  int turn_rows = 0;               ///< of the source
  std::array<int, 2> most_rows{};  ///< of each grid, that end in a turn
  int lines = 0;                   ///< that end in a turn

  /// Tiles as wide as a block's columns of the source are enough for. `together`: a block makes all
  /// grids. False if there is no such size.
  bool find(std::span<const GroupTables> groups, bool together);

  /// Of what turns leave to be filtered across.
  std::size_t line_bytes() const {
    return static_cast<std::size_t>(lines * kTileColumns) * sizeof(float);
  }

 private:
  bool find_turn(std::span<const GroupTables> groups, bool together);
};

}  // namespace framelane::cuda
