#include "kernels/cuda/matrix_tables.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/axis_floats.hpp"
#include "tests/kernels/real_scaling.hpp"

namespace framelane {
namespace {

struct Sizes {
  int source, target;
};
constexpr Sizes kReductions[] = {{1080, 720}, {1080, 480}, {1920, 854}, {320, 160}, {720, 1080},
                                 {333, 100},  {64, 64},    {97, 61},    {96, 32},   {2160, 721}};

AxisTable axis_of(const Sizes& sizes, ScaleFilter filter) {
  return AxisTable(AxisFilter({.source_pixels = sizes.source,
                               .target_pixels = sizes.target,
                               .source = {},
                               .target = {},
                               .filter = filter}));
}

/// The weight of the source's sample `sample` in the target's sample i.
double weight_of(const AxisTable& axis, int i, int sample) {
  const int place = sample - axis.first()[static_cast<std::size_t>(i)];
  return place >= 0 && place < axis.taps() ? axis.weights(i)[place] : 0;
}

/// Which sample of the source is sample `i` of half `half` (as in MatrixAcrossTable::weight()).
int sample_of(const MatrixAcrossTable& across, std::size_t group, int half, int i) {
  const int last = across.halves[group] >> 1;
  return (half == 2 ? last - 2 : last - 1 + half) * kMatrixHalf + i - across.origin;
}

TEST(MatrixTablesTest, WeightsAreTheAxisWeightsRounded) {
  int tables = 0;
  for (const Sizes& sizes : kReductions) {
    for (const ScaleFilter filter : kScaleFilters) {
      const AxisTable axis = axis_of(sizes, filter);
      const int halves = MatrixDownTable::halves(axis, sizes.source);
      MatrixDownTable down;
      if (halves == 0 || !down.find(axis, sizes.source, halves)) continue;
      ++tables;
      const double unit = std::ldexp(1.0, down.bits);
      for (int y = 0; y < sizes.target; ++y) {
        const auto group = static_cast<std::size_t>(y / kMatrixRows);
        const int first = down.first[group];
        ASSERT_GE(first, 0);
        ASSERT_LE(first + halves * kMatrixHalf, sizes.source);
        const std::uint32_t* const words =
            down.words.data() + group * static_cast<std::size_t>(halves) * 3 * kMatrixLanes * 2;
        double sum = 0, exact_sum = 0;
        for (int j = 0; j < halves * kMatrixHalf; ++j) {
          const std::int32_t weight = MatrixDownTable::weight(words, y % kMatrixRows, j);
          const double exact = weight_of(axis, y, first + j);
          ASSERT_LT(std::abs(weight - exact * unit), 1.001) << y << ", " << j;
          sum += weight;
          exact_sum += exact;
        }
        ASSERT_EQ(sum, unit);
        ASSERT_NEAR(exact_sum, 1, 1e-9);
      }
      MatrixAcrossTable across;
      if (!across.place(axis)) continue;
      ASSERT_TRUE(across.find(axis, 219.0 / 255, 23));
      for (int x = 0; x < sizes.target; ++x) {
        const auto group = static_cast<std::size_t>(x / kMatrixColumns);
        const std::uint32_t* const words =
            across.words.data() + group * static_cast<std::size_t>(across.words_of_group());
        double exact_sum = 0;
        for (int i = 0; i < (2 + (across.halves[group] & 1)) * kMatrixHalf; ++i) {
          const int half = i / kMatrixHalf;
          const int sample = sample_of(across, group, half, i % kMatrixHalf);
          const std::int32_t weight =
              MatrixAcrossTable::weight(words, x % kMatrixColumns, half, i % kMatrixHalf);
          const double exact = sample < 0 ? 0 : weight_of(axis, x, sample);
          ASSERT_LE(std::abs(weight - exact * 219 / 255 * std::ldexp(1.0, across.bits)), 0.501);
          exact_sum += exact;
        }
        ASSERT_NEAR(exact_sum, 1, 1e-9);
      }
    }
  }
  EXPECT_GT(tables, 30);
}

/// How much the sum for sample (x, y) is above the true one. Samples are 0 or 255 as rounded
/// weights like it least, or any, as `turn` says.
double excess(const AxisTable& axis, const MatrixTables& tables, int halves, int x, int y, int turn,
              double factor, double offset, std::mt19937& random) {
  const auto group_down = static_cast<std::size_t>(y / kMatrixRows);
  const auto group_across = static_cast<std::size_t>(x / kMatrixColumns);
  const std::uint32_t* const down =
      tables.down.words.data() +
      group_down * static_cast<std::size_t>(halves) * 3 * kMatrixLanes * 2;
  const MatrixAcrossTable& columns = tables.across;
  const std::uint32_t* const across =
      columns.words.data() + group_across * static_cast<std::size_t>(columns.words_of_group());
  double exact = 0;
  std::int64_t by_8 = 0;
  for (int i = 0; i < (2 + (columns.halves[group_across] & 1)) * kMatrixHalf; ++i) {
    const int half = i / kMatrixHalf;
    const int column = sample_of(columns, group_across, half, i % kMatrixHalf);
    const std::int64_t weight_across =
        MatrixAcrossTable::weight(across, x % kMatrixColumns, half, i % kMatrixHalf);
    double exact_down = 0;
    std::int64_t sum = 0;
    for (int j = 0; j < halves * kMatrixHalf; ++j) {
      const std::int64_t weight = MatrixDownTable::weight(down, y % kMatrixRows, j);
      const double exact_weight = weight_of(axis, y, tables.down.first[group_down] + j);
      const bool above =
          static_cast<double>(weight) > exact_weight * std::ldexp(1.0, tables.down.bits);
      const int sample = turn < 8    ? (above == (turn % 2 == 0) ? 255 : 0)
                         : turn < 16 ? static_cast<int>(random() % 2 * 255)
                                     : static_cast<int>(random() % 256);
      sum += weight * (sample - 128);
      exact_down += exact_weight * sample;
    }
    EXPECT_EQ(sum, static_cast<std::int32_t>(sum));
    sum >>= 8;
    const auto w0 = static_cast<std::int8_t>(weight_across);
    by_8 += (sum * weight_across - (sum & 0xFF) * w0) / 256;
    exact += exact_down * (column < 0 ? 0 : weight_of(axis, x, column));
  }
  const std::int64_t value = (by_8 >> 8) + tables.output.offset;
  EXPECT_EQ(value, static_cast<std::int32_t>(value));
  return static_cast<double>(value) -
         (exact * factor + offset) * std::ldexp(1.0, tables.output.shift);
}

/// Sums over samples that are as bad as they can be for their rounded weights, and over noise.
TEST(MatrixTablesTest, SumsAreWithinTheirWindow) {
  std::mt19937 random(7);
  for (const LinearForm& form : {LinearForm{{1, 0, 0}, 0, 1}, LinearForm{{219, 0, 0}, 4080, 255}}) {
    const auto factor =
        static_cast<double>(form.coefficients[0]) / static_cast<double>(form.denominator);
    const double offset =
        static_cast<double>(form.offset) / static_cast<double>(form.denominator) + 0.5;
    for (const Sizes& sizes : kReductions) {
      for (const ScaleFilter filter : kScaleFilters) {
        const AxisTable axis = axis_of(sizes, filter);
        const int halves = MatrixDownTable::halves(axis, sizes.source);
        MatrixTables tables;
        if (halves == 0 || !tables.across.place(axis)) continue;
        ASSERT_TRUE(tables.find(axis, axis, sizes.source, halves, form, 0));
        std::int64_t common = 1;
        for (const std::int64_t denominator : axis.denominators()) {
          common = std::lcm(common, denominator);
          if (common > 1 << 22) break;
        }
        const double apart = static_cast<double>(common) * static_cast<double>(common) *
                             static_cast<double>(form.denominator);
        for (int turn = 0; turn < 24; ++turn) {
          const int x = static_cast<int>(random() % static_cast<unsigned>(sizes.target));
          const int y = static_cast<int>(random() % static_cast<unsigned>(sizes.target));
          const double too_much = excess(axis, tables, halves, x, y, turn, factor, offset, random);
          // Without a window, the next value is so far away.
          const double room = tables.output.window > 0
                                  ? tables.output.window
                                  : std::ldexp(0.5, tables.output.shift) / apart;
          ASSERT_GE(too_much, 0) << sizes.source << " to " << sizes.target;
          ASSERT_LT(too_much, room) << sizes.source << " to " << sizes.target;
        }
      }
    }
  }
}

/// Where values are multiples of 1 / divisor, a tie is never in doubt.
TEST(MatrixTablesTest, SimpleWeightsLeaveNoDoubt) {
  const AxisTable twice = axis_of({320, 160}, ScaleFilter::kBicubic);
  const AxisTable thrice = axis_of({96, 32}, ScaleFilter::kArea);
  MatrixTables tables;
  ASSERT_TRUE(tables.across.place(twice));
  ASSERT_TRUE(tables.find(twice, twice, 320, 3, {{1, 0, 0}, 0, 1}, 0));
  EXPECT_EQ(tables.output.window, 0);
  ASSERT_TRUE(tables.across.place(thrice));
  ASSERT_TRUE(tables.find(thrice, thrice, 96, 3, {{1, 0, 0}, 0, 1}, 0));
  EXPECT_EQ(tables.output.window, 0);
}

}  // namespace
}  // namespace framelane
