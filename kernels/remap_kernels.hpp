#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/byte_map.hpp"

// The SIMD steps of the remap converter. They work on lines of samples, which may have any length
// and alignment and must not overlap. Nothing is read or written beyond what is said.

namespace framelane {

/// The rows that one row of chroma is the mean of: one, two, or three with the weights [1 2 1].
struct MeanRows {
  std::size_t count = 1;
  std::array<const std::uint8_t*, 3> row{};
};

/// What is averaged along a row: each sample alone; samples 2i and 2i + 1; or samples 2i - 1, 2i
/// and 2i + 1 with the weights [1 2 1].
enum class Across : std::uint8_t { kOne, kTwo, kThree };

/// Where a row of chroma goes. If `v` is null, U and V alternate in `u`.
struct ChromaLines {
  std::uint8_t* u = nullptr;
  std::uint8_t* v = nullptr;
};

/// Rows of packed 4:2:2, and what becomes of them. The mean of their chroma goes to `chroma`. The
/// luma of the last row but one goes to luma[0], and that of the last to luma[1]; if there is one
/// row, its luma goes to luma[0]. If luma[1] is null, that luma is not wanted.
struct PackedLines {
  bool luma_first = true;  ///< Y U Y V; else U Y V Y
  MeanRows rows;
  std::array<std::uint8_t*, 2> luma{};
  ChromaLines chroma;
};

/// Where `map` is null, samples keep their values. Means are rounded half up, once.
struct RemapKernels {
  void (*map)(const std::uint8_t* from, std::uint8_t* to, std::size_t count, const ByteMap& map);
  /// uv[2i], uv[2i + 1] = u[i], v[i], and back, for `count` pairs.
  void (*merge)(const std::uint8_t* u, const std::uint8_t* v, std::uint8_t* uv, std::size_t count,
                const ByteMap* map);
  void (*split)(const std::uint8_t* uv, std::uint8_t* u, std::uint8_t* v, std::size_t count,
                const ByteMap* map);
  /// `count` means. With kThree the sample before the first is read too, and the one before that.
  void (*mean)(const MeanRows& rows, Across across, std::uint8_t* to, std::size_t count);
  /// `pairs` of pixels.
  void (*unpack)(const PackedLines& lines, std::size_t pairs);
};

/// The kernels for the best instruction set of this CPU; all give the same bytes. Null if Highway
/// has only its one-lane fallback. Any thread.
const RemapKernels* best_remap_kernels();

}  // namespace framelane
