#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// The SIMD steps of Scaler. It makes one row of the target after the other: rows of the source
// become numbers, are filtered down into one line of numbers, and this line is filtered across.
// Nothing is read or written beyond a count, except where that is said.

namespace framelane {

/// Floats behind a line that may be read or written.
inline constexpr int kFloatSlack = 80;

/// What turns filtered numbers into codes: values[0] * factors[0] + … + offset, clamped and
/// rounded. A code may be wrong only if the value is `doubt` or more away from it.
struct ScaleForm {
  std::size_t inputs = 1;
  std::array<float, 3> factors{1, 0, 0};
  float offset = 0;
  float doubt = 1;
};

struct ScaleKernels {
  /// How many floats a vector has: 4, 8 or 16.
  int lanes;
  int most_reach() const { return 4 * lanes; }

  /// From pixels of `step` (1 to 4) samples: to[i] = factors · pixel i; with a step of 1, the
  /// sample itself. Behind them it writes zeros, as many as filter_down reads.
  void (*load)(const std::uint8_t* from, int step, const float* factors, float* to,
               std::size_t count);
  /// to[i] = weights[0] * rows[0][i] + weights[1] * rows[1][i] + … for `taps` rows, and what is
  /// in to[i], if it is asked to add. Reads and writes up to kFloatSlack floats beyond.
  void (*filter_down)(const float* const* rows, const float* weights, int taps, bool adds,
                      float* to, std::size_t count);
  /// to[i] is the sum over j of sample i's weight j times from[first[i] - first[0] + j]. `first` is
  /// in rising order, and first[i + lanes - 1] - first[i] is less than most_reach(). Weights lie as
  /// vectors do: weight j of sample i is weights[places[i / lanes] + j * lanes + i % lanes]. All
  /// are there for whole vectors, also where the last one has fewer samples. Reads and writes up to
  /// kFloatSlack floats beyond what it needs.
  void (*filter_across)(const float* from, const std::int32_t* first, const float* weights,
                        const std::uint32_t* places, int taps, float* to, std::size_t count);
  /// The same of samples that may lie as far apart as they like: weight j of sample i is
  /// weights[i * taps + j]. Reads up to kFloatSlack floats beyond what it needs.
  void (*filter_across_far)(const float* from, const std::int32_t* first, const float* weights,
                            int taps, float* to, std::size_t count);
  /// The codes of lines of numbers. Reads up to kFloatSlack numbers beyond. Returns how many codes
  /// are doubtful; their places are in `doubtful`, which has room for all.
  std::size_t (*codes)(const ScaleForm& form, const std::array<const float*, 3>& lines,
                       std::uint8_t* to, std::size_t count, std::uint16_t* doubtful);
};

/// The kernels for the best instruction set of this CPU. Null if Highway has only its one-lane
/// fallback. Any thread.
const ScaleKernels* best_scale_kernels();

}  // namespace framelane
