#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/color_spec.hpp"
#include "kernels/exact_quotient.hpp"
#include "kernels/fixed_form.hpp"

// The SIMD part of rgb_to_yuv, which converts one tile of pixels. It does not handle the
// picture's edges, except for the left one.

namespace framelane {

inline constexpr int kBytesPerPixel = 4;  ///< 24-bit pixels get a fourth byte first
/// Pixels in a tile, which fits into the first-level cache.
inline constexpr int kTile = 256;
/// A multiple of every vector length used. The last pixels of a row, if fewer, are padded to a
/// group.
inline constexpr int kGroup = 32;
inline constexpr int kMaxLanes = kGroup / 2;

/// A FixedForm of a pixel's four bytes, with any order of red, green and blue, for 16-bit
/// multiplications: coefficient = high * 2^kLowBits + low. Bytes 0 and 2 are a pair (`even`), and
/// so are bytes 1 and 3 (`odd`). Inside the window `exact` decides.
struct PixelForm {
  static constexpr int kLowBits = 8;

  PixelForm() = default;
  /// `place`: which bytes red, green and blue are. `scale`: the sum of the filters' weights.
  PixelForm(const LinearForm& form, int scale, const std::array<std::size_t, 3>& place);

  struct Pairs {
    std::uint32_t high = 0, low = 0;  // two 16-bit coefficients each
  };
  Pairs even, odd;
  std::int32_t offset_high = 0;
  int fraction_bits = 0;
  std::int32_t greatest = 0;
  std::int32_t fraction_above_window = 0;
  ExactQuotient exact;
  std::array<std::uint32_t, 4> exact_coefficients{};
};

/// Which pixels share a sample of chroma.
enum class ChromaGrid : std::uint8_t { k420, k422, k444 };

struct RgbToYuvPlan {
  PixelForm luma, u, v;
  ChromaGrid grid = ChromaGrid::k420;
  Siting siting = Siting::kLeft;
  int fraction_bits = 0;  // 22 or 23, the same in all three forms
};

/// The source rows that one chroma row is made of. Only top-left siting uses `above`, and only
/// 4:2:0 uses `lower`.
struct SourceRows {
  const std::uint8_t* above;
  const std::uint8_t* upper;
  const std::uint8_t* lower;
};

/// Where two luma rows and one chroma row are written. `lower` is null if there is one luma row:
/// the picture ends with it, or it is not 4:2:0. `v` is null if U and V alternate in `u`.
/// `streaming`: stores bypass the caches, and all rows of a tile begin at multiples of 64 bytes.
struct TargetRows {
  std::uint8_t* upper;
  std::uint8_t* lower;
  std::uint8_t* u;
  std::uint8_t* v;
  bool streaming;
};

/// The vertically filtered pixels of a tile, even and odd columns apart. `outer` has the sums of
/// bytes 0 and 2 in its low and high half, `inner` those of bytes 1 and 3. The odd columns begin at
/// index kMaxLanes; the index before that has the column left of the tile.
struct ColumnSums {
  alignas(64) std::array<std::uint32_t, kTile / 2> even_outer, even_inner;
  alignas(64) std::array<std::uint32_t, kMaxLanes + kTile / 2> odd_outer, odd_inner;
};

/// Converts `count` pixels, a multiple of kGroup and at most kTile. `leftmost`: the tile begins at
/// the picture's column 0; otherwise `columns` must be as the call for the tile to the left left
/// it.
using TileFunction = void (*)(const RgbToYuvPlan& plan, const SourceRows& source,
                              const TargetRows& target, int count, bool leftmost,
                              ColumnSums& columns);

/// Gives 24-bit pixels a fourth byte. Reads and prefetches `count` pixels of a row, a multiple of
/// kGroup, and of the one that is `ahead` bytes further.
using WidenFunction = void (*)(const std::uint8_t* from, std::ptrdiff_t ahead, std::uint8_t* to,
                               int count);

/// The function for this plan and the best instruction set of this CPU; all give the same bytes.
/// Null if Highway has only its one-lane fallback. Any thread.
TileFunction best_tile_function(const RgbToYuvPlan& plan);
WidenFunction best_widen_function();

}  // namespace framelane
