#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linear_transform.hpp"
#include "kernels/scaled_reference.hpp"

// Weights as whole numbers in the order in which a GPU's matrix units need them
// (kernels/cuda/scale_matrix.cuh). A weight is three signed bytes w2, w1, w0:
// w2 * 2^16 + w1 * 2^8 + w0.

namespace framelane {

/// Rows of the target, and columns of it, in one product of matrices.
inline constexpr int kMatrixRows = 16;
inline constexpr int kMatrixColumns = 8;
/// Samples of the source in a half of a product: products are of 32 samples, or of 16.
inline constexpr int kMatrixHalf = 16;
inline constexpr int kMatrixLanes = 32;

/// Weights down, for kMatrixRows rows of the target at a time. The weights of a row add up to
/// 2^bits.
struct MatrixDownTable {
  static constexpr int kLeastHalves = 2;
  static constexpr int kMostHalves = 4;

  int bits = 0;
  double amplitude = 0;  ///< the largest sum of absolute weights
  double error = 0;      ///< what a sum of samples may be wrong by
  bool coarse = false;   ///< weights are multiples of 2^8
  /// The first row of the source for each group of rows. So many halves follow from there on, all
  /// in the source.
  std::vector<std::int32_t> first;
  /// [group][half][byte of the weight][lane][2]
  std::vector<std::uint32_t> words;

  /// How many halves a group of rows takes; 0: too many, or the source has too few rows.
  static int halves(const AxisTable& axis, int source_rows);
  /// False if the weights are too large. Requires at least halves(...) `half_count`.
  bool find(const AxisTable& axis, int source_rows, int half_count);
  /// Weight of row `row` of a group for the source's row first + `source_row`.
  static std::int32_t weight(const std::uint32_t* group, int row, int source_row);
};

/// Weights across, for kMatrixColumns columns of the target at a time: of the last two of the
/// halves that they need of a row of the source, and in wide tables of the one before. Half h
/// begins with sample kMatrixHalf * h - origin.
struct MatrixAcrossTable {
  static constexpr int kNarrowWords = 6 * kMatrixLanes;
  static constexpr int kWideWords = 10 * kMatrixLanes;

  int bits = 0;
  int origin = 0;  ///< a multiple of 4
  bool wide = false;
  double amplitude = 0;
  double rounding = 0;  ///< the largest sum of what weights are wrong by
  /// The largest sums of weights above 0 and of those below 0, and the same of their lowest bytes.
  double whole[2] = {}, lowest[2] = {};
  /// For each group of columns: the last half, times two, and one more if it needs three of them.
  std::vector<std::int32_t> halves;
  /// For each group [lane][4]: bytes 0 and 1 of the weights of eight samples; [lane][2]: bytes 2;
  /// and in wide tables [lane][4]: bytes 0, 1 and 2 of those of four samples of the half before.
  std::vector<std::uint32_t> words;

  int words_of_group() const { return wide ? kWideWords : kNarrowWords; }

  /// Chooses the origin. False if a group of columns needs more than three halves.
  bool place(const AxisTable& axis);
  /// Weights are multiplied by `factor`. They have at most `most_bits` bits behind the point.
  /// Requires place(axis). False if weights are too large.
  bool find(const AxisTable& axis, double factor, int most_bits);
  /// Weight of column `column` of a group for sample `sample` of its half `half`, in the order 0
  /// (the one before the last), 1 (the last one), 2 (the one before both).
  static std::int32_t weight(const std::uint32_t* group, int column, int half, int sample);
};

/// How a sum of products becomes a code. Sums whose bits below `shift` are less than `window` are
/// in doubt; 0: none is.
struct MatrixOutput {
  std::int32_t offset, window, shift;
};

/// The tables of a grid of the target, and what its sums may be wrong by.
struct MatrixTables {
  MatrixDownTable down;
  MatrixAcrossTable across;
  MatrixOutput output{};
  /// How a true sum becomes a value, to which 1/2 is added.
  double factor = 1, offset = 0.5;
  /// A value that is less than 1e-8 away from a tie is one.
  bool ties = false;

  /// `form` is that of `channel`. False if numbers do not fit in 32 bits. Requires
  /// across.place(across_axis).
  bool find(const AxisTable& across_axis, const AxisTable& down_axis, int source_rows,
            int down_halves, const LinearForm& form, std::size_t channel);
};

}  // namespace framelane
