#include "kernels/sample_runs.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace framelane {
namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count, std::mt19937& random) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& value : bytes) value = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST(SampleRunsTest, OnlyTheSamplesOfTheCellsAreCopied) {
  std::mt19937 random{17};
  for (int step = 1; step <= 4; ++step) {
    for (unsigned which = 1; which < 1U << step; ++which) {
      SampleCells cells(step);
      for (int i = 0; i < step; ++i) {
        if ((which >> i & 1) != 0) cells.add(i);
      }
      for (int count = 0; count < 40; ++count) {
        constexpr std::size_t kAround = 9;
        const auto size = static_cast<std::size_t>(step * count);
        const auto from = random_bytes(size, random);
        auto to = random_bytes(size + 2 * kAround, random);
        auto expected = to;
        for (std::size_t i = 0; i < size; ++i) {
          if ((which >> i % static_cast<std::size_t>(step) & 1) != 0) {
            expected[kAround + i] = from[i];
          }
        }
        cells.copy(from.data(), to.data() + kAround, count);
        ASSERT_EQ(to, expected) << step << ' ' << which << ' ' << count;
      }
    }
  }
}

// Memory of the exact size, so that AddressSanitizer sees what lies outside.
TEST(SampleRunsTest, NothingBehindTheLastSampleIsTouched) {
  std::mt19937 random{18};
  for (int step = 1; step <= 4; ++step) {
    SampleCells cells(step);
    cells.add(0);
    for (int count = 1; count < 40; ++count) {
      const std::size_t size = cells.bytes(count);
      EXPECT_EQ(size, static_cast<std::size_t>(step * (count - 1) + 1));
      const auto from = random_bytes(size, random);
      auto to = random_bytes(size, random);
      cells.copy(from.data(), to.data(), count);
      ASSERT_EQ(to.back(), from.back());
    }
  }
}

TEST(SampleRunsTest, ColumnsAreAddedUpWithoutOverflow) {
  constexpr std::size_t kPitch = 70;
  const std::vector<std::uint8_t> bytes(kPitch * kMostRowsToAdd, 255);
  std::array<std::uint16_t, 67> sums{};
  sums.fill(1);
  add_rows(bytes.data() + 1, kPitch, 66, kMostRowsToAdd, sums.data());
  for (std::size_t i = 0; i < 66; ++i) EXPECT_EQ(sums[i], 65535) << i;
  EXPECT_EQ(sums[66], 1);
  add_rows(bytes.data() + kPitch * 2, -static_cast<std::ptrdiff_t>(kPitch), 66, 3, sums.data());
  EXPECT_EQ(sums[65], 765);
}

TEST(SampleRunsTest, SamplesAreFilled) {
  std::array<std::uint8_t, 12> bytes{};
  fill_samples(bytes.data() + 1, 3, 3, 9);
  fill_samples(bytes.data() + 9, 1, 2, 8);
  fill_samples(bytes.data(), 2, 0, 7);
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 12>{0, 9, 0, 0, 9, 0, 0, 9, 0, 8, 8, 0}));
}

}  // namespace
}  // namespace framelane
