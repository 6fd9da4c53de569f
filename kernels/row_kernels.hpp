#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/fixed_form.hpp"

// The SIMD steps of RowConverter. Each computes lines of samples from other lines, `count` samples
// long, and knows nothing of a picture's edges. Lines may have any length and alignment and must
// not overlap. Nothing is read or written beyond `count`, except where that is said.

namespace framelane {

/// A line of 8-bit samples, or of 16-bit weighted sums of samples. The other pointer is null.
struct Line {
  const std::uint8_t* samples = nullptr;
  const std::uint16_t* sums = nullptr;
};

/// Up to three rows with their weights.
struct WeightedRows {
  std::size_t count = 0;
  std::array<const std::uint8_t*, 3> row{};
  std::array<int, 3> weight{};
};

struct RowKernels {
  /// Separate the interleaved samples of 2, 3 or 4 channels.
  void (*split2)(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::size_t count);
  void (*split3)(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::uint8_t* c,
                 std::size_t count);
  void (*split4)(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::uint8_t* c,
                 std::uint8_t* d, std::size_t count);
  /// Interleave the samples of 2 or 3 channels.
  void (*merge2)(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* to, std::size_t count);
  void (*merge3)(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
                 std::uint8_t* to, std::size_t count);

  /// to[i] = sum of weight * row[i].
  void (*filter_down)(const WeightedRows& rows, std::uint16_t* to, std::size_t count);
  /// to[i] = weight · (from[stride * i - 1], from[stride * i], from[stride * i + 1]).
  /// stride is 1 or 2. Reads and writes up to kLineSlack samples beyond what it needs.
  void (*filter_across)(const std::uint16_t* from, int stride, const std::array<int, 3>& weight,
                        std::uint16_t* to, std::size_t count);
  /// Makes two samples of each:
  ///   to[2 i] = even · (from[i - 1], from[i])
  ///   to[2 i + 1] = odd · (from[i], from[i + 1])
  /// Reads up to kLineSlack samples beyond `count`, and writes up to twice as many beyond 2 *
  /// count.
  void (*interpolate)(const std::uint16_t* from, const std::array<int, 2>& even,
                      const std::array<int, 2>& odd, std::uint16_t* to, std::size_t count);
  /// Applies the form at each position of its input lines, which are in the order of
  /// FixedForm::input: all lines of samples, all lines of sums, or one line of samples and two of
  /// sums.
  void (*evaluate)(const FixedForm& form, const std::array<Line, 3>& lines, std::uint8_t* to,
                   std::size_t count);
};

inline constexpr std::size_t kLineSlack = 64;

/// The kernels for the best instruction set of this CPU; all give the same bytes. Null if Highway
/// has only its one-lane fallback. Any thread.
const RowKernels* best_row_kernels();
/// That instruction set: "AVX-512", "AVX2", "SSE4.1", "SSSE3" …, or "baseline" if there are no
/// kernels.
std::string_view simd_level();

}  // namespace framelane
