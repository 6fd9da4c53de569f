#pragma once

#include <array>
#include <cstdint>

#include "kernels/color_spec.hpp"
#include "kernels/exact_quotient.hpp"

// The SIMD half of rgb_to_yuv420: one tile of pixels, with nothing of a picture's edges in it.

namespace framelane {

inline constexpr int kBytesPerPixel = 4;
/// Pixels are worked on in tiles that stay in the first-level cache; a row's last few pixels go
/// through a padded copy of `kGroup`, a multiple of every vector length used.
inline constexpr int kTile = 256;
inline constexpr int kGroup = 32;
inline constexpr int kMaxLanes = kGroup / 2;

struct RgbToYuv420Plan {
  // Coefficients in the order of the colour bytes in memory, alpha left out.
  ExactQuotient luma, u, v;
  Siting siting = Siting::kLeft;
  bool alpha_first = false;
};

/// The source rows one chroma row is made of; `above` is used by top-left siting alone.
struct SourceRows {
  const std::uint8_t* above;
  const std::uint8_t* upper;
  const std::uint8_t* lower;
};

/// Where the results of two luma rows and one chroma row go. `lower` is null when the picture ends
/// with `upper`; `v` is null when U and V alternate in `u`.
struct TargetRows {
  std::uint8_t* upper;
  std::uint8_t* lower;
  std::uint8_t* u;
  std::uint8_t* v;
};

/// Vertically filtered pixels of a tile, even and odd columns apart. `outer` holds the first and
/// third colour byte's sums in its low and high half, `inner` the second's. The odd columns start
/// at kMaxLanes; the place before holds the column left of the tile.
struct ColumnSums {
  alignas(64) std::array<std::uint32_t, kTile / 2> even_outer, even_inner;
  alignas(64) std::array<std::uint32_t, kMaxLanes + kTile / 2> odd_outer, odd_inner;
};

/// Converts `count` pixels, a multiple of kGroup and at most kTile. `leftmost`: the tile begins at
/// the picture's column 0; otherwise `columns` must still hold what the tile to the left put there.
using TileFunction = void (*)(const RgbToYuv420Plan& plan, const SourceRows& source,
                              const TargetRows& target, int count, bool leftmost,
                              ColumnSums& columns);

/// The one for the best instruction set of this CPU; every one gives the same bytes. Thread-safe.
TileFunction best_tile_function();

}  // namespace framelane
