#include "kernels/luma_histogram.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

#include "kernels/channel.hpp"

namespace framelane {
namespace {

// Neighbouring samples, which are often equal, are counted in different tables: in one table each
// would wait until the count before it is stored. Vector instructions do not help, because two of
// their lanes may have to count in the same place.
constexpr std::size_t kTables = 4;
using Tables = std::array<LumaHistogram, kTables>;

void count_row(const std::uint8_t* samples, std::size_t count, Tables& tables) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, samples + i, sizeof eight);
    for (std::size_t k = 0; k < 8; ++k) ++tables[k % kTables].counts[eight >> 8 * k & 0xFF];
  }
  for (; i < count; ++i) ++tables[i % kTables].counts[samples[i]];
}

}  // namespace

std::uint64_t LumaHistogram::samples() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::uint64_t LumaHistogram::sum() const {
  std::uint64_t sum = 0;
  for (std::size_t value = 0; value < counts.size(); ++value) sum += value * counts[value];
  return sum;
}

int LumaHistogram::minimum() const {
  const auto first = std::ranges::find_if(counts, [](std::uint32_t count) { return count != 0; });
  assert(first != counts.end());
  return static_cast<int>(first - counts.begin());
}

int LumaHistogram::maximum() const {
  const auto last =
      std::find_if(counts.rbegin(), counts.rend(), [](std::uint32_t count) { return count != 0; });
  assert(last != counts.rend());
  return static_cast<int>(counts.rend() - last) - 1;
}

double LumaHistogram::mean() const {
  return static_cast<double>(sum()) / static_cast<double>(samples());
}

bool has_luma(PixelFormat format) { return !info(format).rgb; }

void count_luma(const ConstImageView& image, int row_begin, int row_end, LumaHistogram& histogram) {
  assert(has_luma(image.format));
  const ConstChannel luma = channels(image)[0];
  Tables tables{};
  for (int y = row_begin; y < row_end; ++y) {
    if (luma.step == 1) {
      count_row(&luma.at(0, y), static_cast<std::size_t>(luma.width), tables);
      continue;
    }
    for (int x = 0; x < luma.width; ++x) {
      ++tables[static_cast<std::size_t>(x) % kTables].counts[luma.at(x, y)];
    }
  }
  for (const LumaHistogram& table : tables) {
    for (std::size_t value = 0; value < kLumaValues; ++value) {
      histogram.counts[value] += table.counts[value];
    }
  }
}

}  // namespace framelane
