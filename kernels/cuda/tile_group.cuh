#pragma once

#include <cstdint>

#include "kernels/cuda/scale.cuh"
#include "kernels/cuda/tile_tables.hpp"

// What ScaleTile (scale_tile.cuh) knows of a target's grid.

namespace framelane::cuda {

/// Frames of a launch.
inline constexpr int kMostFramesOfTiles = 8;
inline constexpr int kTileColumns = 4 * static_cast<int>(kBlockThreads);
/// A thread waits for so many rows at once. Turns have a multiple of them.
inline constexpr int kStep = TileDownTable::kRowsBeyond;
/// How many rows ahead it begins to read.
inline constexpr int kAhead = 2 * kStep;

/// Weights across: for each sample of the target those of 4 * `quads` samples of the source, from
/// first[x] rounded down to a multiple of 4. Four for each sample lie together.
struct TileAcross {
  const std::int32_t* first;
  const float* weights;
  int quads, samples;
};

/// Weights down: TileDownTable's rows.
struct TileDown {
  const std::int32_t* first;  // for each row of the target: it has no part of earlier rows
  const std::int32_t* last;   // in rising order
  const TileDownTable::Row* rows;
  int row_count;
};

/// One grid of the target: luma, or both of chroma.
struct TileGroup {
  TileAcross across;
  TileDown down;
  TermView exact;
  ScalePlace place;
  int row_begin, row_end;  // of the place, that are made
  int columns, rows;       // of a tile
  int log2_columns;        // of the next power of two, at least a warp, at most a block
  int most_rows;           // that end in a turn
};

/// How a filtered line becomes a channel of the target. Values whose fraction is below `window` are
/// in doubt; 0: none is.
struct TileOutput {
  float factor, offset, window;
  int channel;
};

}  // namespace framelane::cuda
