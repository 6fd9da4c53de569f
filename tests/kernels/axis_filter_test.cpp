#include "kernels/axis_filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tests/kernels/real_scaling.hpp"

namespace framelane {
namespace {

using ::testing::ElementsAre;

AxisWeights weights(int source, int target, ScaleFilter filter, int i) {
  return AxisFilter({.source_pixels = source,
                     .target_pixels = target,
                     .source = {},
                     .target = {},
                     .filter = filter})
      .at(i);
}

TEST(AxisFilterTest, HalfAndTwoThirdsOfASize) {
  const AxisWeights bilinear = weights(16, 8, ScaleFilter::kBilinear, 3);
  EXPECT_EQ(bilinear.first, 5);
  EXPECT_EQ(bilinear.denominator, 8);
  EXPECT_THAT(bilinear.numerators, ElementsAre(1, 3, 3, 1));
  const AxisWeights bicubic = weights(16, 8, ScaleFilter::kBicubic, 3);
  EXPECT_EQ(bicubic.first, 3);
  EXPECT_EQ(bicubic.denominator, 256);
  EXPECT_THAT(bicubic.numerators, ElementsAre(-3, -9, 29, 111, 111, 29, -9, -3));
  const AxisWeights area = weights(9, 6, ScaleFilter::kArea, 2);
  EXPECT_EQ(area.first, 3);
  EXPECT_EQ(area.denominator, 3);
  EXPECT_THAT(area.numerators, ElementsAre(2, 1));
}

TEST(AxisFilterTest, BeyondAnEdgeTheLastSampleIsRepeated) {
  const AxisWeights first = weights(4, 2, ScaleFilter::kBilinear, 0);
  EXPECT_EQ(first.first, 0);
  EXPECT_THAT(first.numerators, ElementsAre(4, 3, 1));
  const AxisWeights last = weights(4, 2, ScaleFilter::kBilinear, 1);
  EXPECT_EQ(last.first, 1);
  EXPECT_THAT(last.numerators, ElementsAre(1, 3, 4));
  EXPECT_THAT(weights(1, 1000, ScaleFilter::kSpline36, 7).numerators, ElementsAre(1));
}

TEST(AxisFilterTest, AtTheSameSizeChromaIsFilteredAsInAPlainConversion) {
  const auto filter = [](AxisGrid source, AxisGrid target, bool over_sites) {
    return AxisFilter({.source_pixels = 8,
                       .target_pixels = 8,
                       .source = source,
                       .target = target,
                       .over_sites = over_sites});
  };
  const AxisGrid full, cosited{true, 0}, between{true, 1};
  EXPECT_THAT(filter(full, full, true).at(3).numerators, ElementsAre(1));
  EXPECT_THAT(filter(full, cosited, false).at(1).numerators, ElementsAre(1, 2, 1));
  EXPECT_THAT(filter(full, between, false).at(1).numerators, ElementsAre(1, 1));
  EXPECT_THAT(filter(cosited, full, false).at(3).numerators, ElementsAre(1, 1));
  EXPECT_THAT(filter(between, full, false).at(3).numerators, ElementsAre(3, 1));
  EXPECT_THAT(filter(between, between, true).at(1).numerators, ElementsAre(1, 6, 1));
  EXPECT_THAT(filter(cosited, cosited, false).at(2).numerators, ElementsAre(1));
  // A siting that changes moves samples by a quarter of their distance.
  const AxisWeights moved = filter(between, cosited, false).at(2);
  EXPECT_EQ(moved.first, 0);
  EXPECT_THAT(moved.numerators, ElementsAre(-3, 29, 111, -9));
}

void expect_real_weights(const AxisFilter::Shape& shape, int i) {
  const AxisWeights actual = AxisFilter(shape).at(i);
  const std::vector<long double> expected = real_weights(shape, i);
  ASSERT_EQ(std::accumulate(actual.numerators.begin(), actual.numerators.end(), std::int64_t{0}),
            actual.denominator);
  ASSERT_GT(actual.denominator, 0);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const std::size_t at = k - static_cast<std::size_t>(actual.first);
    const double weight =
        at < actual.numerators.size()
            ? static_cast<double>(actual.numerators[at]) / static_cast<double>(actual.denominator)
            : 0;
    ASSERT_NEAR(weight, static_cast<double>(expected[k]), 1e-13)
        << shape.source_pixels << " to " << shape.target_pixels << ", sample " << i << " of " << k;
  }
}

TEST(AxisFilterTest, WeightsAreThoseOfTheTextbooks) {
  std::mt19937 random(1);
  const auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int turn = 0; turn < 2000; ++turn) {
    AxisFilter::Shape shape{.source_pixels = 1 + up_to(turn % 10 == 0 ? 16384 : 300),
                            .target_pixels = 1 + up_to(300),
                            .source = {up_to(2) == 0, up_to(4) - 1},
                            .target = {up_to(2) == 0, up_to(4) - 1},
                            .filter = kScaleFilters[up_to(4)],
                            .over_sites = false};
    if (shape.source_pixels > 64 * shape.target_pixels ||
        shape.source_pixels == shape.target_pixels) {
      continue;
    }
    expect_real_weights(shape, up_to(AxisFilter(shape).target_samples()));
    if (HasFatalFailure()) return;
  }
}

/// The largest numbers that occur: they must fit into 64 bits.
TEST(AxisFilterTest, TheLargestReductionFits) {
  for (const ScaleFilter filter : kScaleFilters) {
    const AxisFilter::Shape shape{.source_pixels = 16383,
                                  .target_pixels = 256,
                                  .source = {false, 0},
                                  .target = {true, 0},
                                  .filter = filter};
    for (const int i : {0, 1, 64, 127}) expect_real_weights(shape, i);
  }
}

}  // namespace
}  // namespace framelane
