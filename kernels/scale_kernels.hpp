#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The SIMD steps of Scaler. It works on groups of kMostRows rows of the target or fewer, as many as
// a vector has lanes: the rows of the source that they need become numbers, and are filtered down
// into a line of numbers for each row; lines are transposed, so that the numbers of one column
// follow each other, one for each row; and columns are filtered across, which needs no shuffling
// then. Nothing is read or written beyond a count, except where that is said.

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

  /// From pixels of `step` (1 to 4) samples: to[i] = factors · pixel i; with a step of 1, the
  /// sample itself. Writes up to kFloatSlack floats beyond.
  void (*load)(const std::uint8_t* from, int step, const float* factors, float* to,
               std::size_t count);
  /// to[i] = weights[0] * from[i] + weights[1] * from[pitch + i] + … for `taps` rows, and what is
  /// in to[i], if it is asked to add. Reads and writes up to kFloatSlack floats beyond.
  void (*filter_down)(const float* from, std::size_t pitch, const float* weights, int taps,
                      bool adds, float* to, std::size_t count);
  /// to[i * rows + r] = from[r][i]. Reads up to kFloatSlack columns beyond, and writes as many.
  void (*transpose)(const float* const* from, float* to, std::size_t count);
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
