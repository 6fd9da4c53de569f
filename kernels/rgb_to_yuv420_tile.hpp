#pragma once

#include <array>
#include <cstdint>

#include "kernels/color_spec.hpp"
#include "kernels/exact_quotient.hpp"
#include "kernels/fixed_form.hpp"

// The SIMD half of rgb_to_yuv420: one tile of pixels, with nothing of a picture's edges in it.

namespace framelane {

inline constexpr int kBytesPerPixel = 4;
/// Pixels are worked on in tiles that stay in the first-level cache; a row's last few pixels go
/// through a padded copy of `kGroup`, a multiple of every vector length used.
inline constexpr int kTile = 256;
inline constexpr int kGroup = 32;
inline constexpr int kMaxLanes = kGroup / 2;

/// A FixedForm of the four bytes of a pixel, whichever of them are red, green and blue, for 16-bit
/// multiplications: coefficient = high * 2^kLowBits + low. Bytes 0 and 2 and bytes 1 and 3 make
/// pairs. `exact` decides inside the window; a tile pays for it as if it were common.
struct PixelForm {
  static constexpr int kLowBits = 8;

  PixelForm() = default;
  /// `place`: the bytes of red, green and blue. `scale`: the sum of the filters' weights.
  PixelForm(const LinearForm& form, int scale, const std::array<std::size_t, 3>& place);

  struct Pairs {
    std::uint32_t high = 0, low = 0;  // two 16-bit numbers each
  };
  Pairs even, odd;
  std::int32_t offset_high = 0;
  int fraction_bits = 0;
  std::int32_t greatest = 0;
  std::int32_t fraction_above_window = 0;
  ExactQuotient exact;
  std::array<std::uint32_t, 4> exact_coefficients{};
};

struct RgbToYuv420Plan {
  PixelForm luma, u, v;
  Siting siting = Siting::kLeft;
  int fraction_bits = 0;  // 22 or 23, the same in all three forms
};

/// The source rows one chroma row is made of; `above` is used by top-left siting alone.
struct SourceRows {
  const std::uint8_t* above;
  const std::uint8_t* upper;
  const std::uint8_t* lower;
};

/// Where the results of two luma rows and one chroma row go. `lower` is null when the picture ends
/// with `upper`; `v` is null when U and V alternate in `u`. `streaming`: past the caches; all rows
/// of a tile begin at multiples of 64 bytes then.
struct TargetRows {
  std::uint8_t* upper;
  std::uint8_t* lower;
  std::uint8_t* u;
  std::uint8_t* v;
  bool streaming;
};

/// Vertically filtered pixels of a tile, even and odd columns apart. `outer` holds the sums of
/// bytes 0 and 2 in its low and high half, `inner` those of bytes 1 and 3. The odd columns start at
/// kMaxLanes; the place before holds the column left of the tile.
struct ColumnSums {
  alignas(64) std::array<std::uint32_t, kTile / 2> even_outer, even_inner;
  alignas(64) std::array<std::uint32_t, kMaxLanes + kTile / 2> odd_outer, odd_inner;
};

/// Converts `count` pixels, a multiple of kGroup and at most kTile. `leftmost`: the tile begins at
/// the picture's column 0; otherwise `columns` must still hold what the tile to the left put there.
using TileFunction = void (*)(const RgbToYuv420Plan& plan, const SourceRows& source,
                              const TargetRows& target, int count, bool leftmost,
                              ColumnSums& columns);

/// The one for this plan and the best instruction set of this CPU; every one gives the same bytes.
/// Null where Highway has none but its one-lane fallback. Thread-safe.
TileFunction best_tile_function(const RgbToYuv420Plan& plan);

}  // namespace framelane
