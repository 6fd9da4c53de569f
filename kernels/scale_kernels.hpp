#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The SIMD steps of Scaler. It works on groups of kMostRows rows of the target or fewer, as many as
// a vector has lanes: each row is filtered down into a line of numbers; lines are turned, so that
// the numbers of one column follow each other, one for each row; and columns are filtered across,
// which needs no shuffling then. Nothing is read or written beyond a count, except where that is
// said.

namespace framelane {

inline constexpr int kMostRows = 16;
/// Floats behind a line that may be read or written.
inline constexpr int kFloatSlack = 16;

/// What turns a column's numbers into codes: values[0] * factors[0] + … + offset, clamped and
/// rounded. A code may be wrong only if the value is `doubt` or more away from it.
struct ScaleForm {
  std::size_t inputs = 1;
  std::array<float, 3> factors{1, 0, 0};
  float offset = 0;
  float doubt = 1;
};

struct ScaleKernels {
  /// Rows of a group: 4, 8 or 16.
  int rows;

  /// to[i] = weights[0] * from[0][i] + … for `taps` rows.
  void (*filter_down)(const std::uint8_t* const* from, const float* weights, int taps, float* to,
                      std::size_t count);
  /// From pixels of `step` (2 to 4) samples: to[i] = factors · pixel i. Reads up to kFloatSlack
  /// pixels beyond and writes as many floats.
  void (*mix)(const float* from, int step, const float* factors, float* to, std::size_t count);
  /// to[i * rows + r] = from[r][i]. Reads up to kFloatSlack columns beyond, and writes as many.
  void (*turn)(const float* const* from, float* to, std::size_t count);
  /// Column i of `to` is the sum of weights[i * taps + j] times column first[i] - begin + j of
  /// `from`.
  void (*filter_across)(const float* from, std::int32_t begin, const std::int32_t* first,
                        const float* weights, int taps, float* to, std::size_t count);
  /// Codes of columns: to[r * pitch + i]. Writes up to 15 bytes beyond each row's count. Returns
  /// how many are doubtful; their numbers i * rows + r are in `doubtful`, which has room for all.
  std::size_t (*codes)(const ScaleForm& form, const std::array<const float*, 3>& columns,
                       std::uint8_t* to, std::ptrdiff_t pitch, std::size_t count,
                       std::uint16_t* doubtful);
};

/// The kernels for the best instruction set of this CPU. Null if Highway has only its one-lane
/// fallback. Any thread.
const ScaleKernels* best_scale_kernels();

}  // namespace framelane
