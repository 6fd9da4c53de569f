#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/fixed_form.hpp"

// The SIMD steps of RowConverter: each turns a few lines of samples into others, `count` samples
// long, with nothing of a picture's edges in it. Lines may be of any length and alignment, must not
// overlap, and are neither read nor written outside what is stated.

namespace framelane {

/// A line of bytes (samples) or of 16-bit sums of weighted samples; the other pointer is null.
struct Line {
  const std::uint8_t* samples = nullptr;
  const std::uint16_t* sums = nullptr;
};

/// Up to three rows, weighted.
struct WeightedRows {
  std::size_t count = 0;
  std::array<const std::uint8_t*, 3> row{};
  std::array<int, 3> weight{};
};

struct RowKernels {
  /// Interleaved samples apart: 2, 3 or 4 channels.
  void (*split2)(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::size_t count);
  void (*split3)(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::uint8_t* c,
                 std::size_t count);
  void (*split4)(const std::uint8_t* from, std::uint8_t* a, std::uint8_t* b, std::uint8_t* c,
                 std::uint8_t* d, std::size_t count);
  /// And together.
  void (*merge2)(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* to, std::size_t count);
  void (*merge3)(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
                 std::uint8_t* to, std::size_t count);

  /// to[i] = sum of weight * row[i].
  void (*filter_down)(const WeightedRows& rows, std::uint16_t* to, std::size_t count);
  /// to[i] = weight · (from[stride * i - 1], from[stride * i], from[stride * i + 1]); stride is 1
  /// or
  /// 2. Reads and writes up to kLineSlack samples beyond what it needs.
  void (*filter_across)(const std::uint16_t* from, int stride, const std::array<int, 3>& weight,
                        std::uint16_t* to, std::size_t count);
  /// Twice as many: to[2 i] = even · (from[i - 1], from[i]), to[2 i + 1] = odd · (from[i], from[i +
  /// 1]). Reads and writes up to kLineSlack samples beyond `count` of `from` and twice that of
  /// `to`.
  void (*interpolate)(const std::uint16_t* from, const std::array<int, 2>& even,
                      const std::array<int, 2>& odd, std::uint16_t* to, std::size_t count);
  /// The form of each place of its input lines, which are in the order of FixedForm::input. Takes
  /// all samples, all sums, or samples followed by two lines of sums.
  void (*evaluate)(const FixedForm& form, const std::array<Line, 3>& lines, std::uint8_t* to,
                   std::size_t count);
};

inline constexpr std::size_t kLineSlack = 64;

/// For the best instruction set of this CPU; every one gives the same bytes. Null where Highway has
/// none but its one-lane fallback. Thread-safe.
const RowKernels* best_row_kernels();
/// What they are for: "AVX-512", "AVX2", "SSE4.1", "SSSE3", or "baseline" where there are none.
std::string_view simd_level();

}  // namespace framelane
