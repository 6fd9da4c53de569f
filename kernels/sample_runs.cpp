#include "kernels/sample_runs.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace framelane {
namespace {

using Words = std::array<std::uint64_t, 3>;

Words load(const std::uint8_t* from) {
  Words words;
  std::memcpy(words.data(), from, sizeof words);
  return words;
}

/// Those bits of `from` that `samples` has, and of `under` the others.
Words joined(const Words& from, const Words& under, const Words& samples) {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = (under[i] & ~samples[i]) | (from[i] & samples[i]);
  }
  return words;
}

}  // namespace

void SampleCells::add(int offset) {
  assert(0 <= offset && offset < step_);
  last_ = std::max(last_, offset);
  for (auto i = static_cast<std::size_t>(offset); i < kBytes;
       i += static_cast<std::size_t>(step_)) {
    samples_[i] = 0xFF;
  }
}

void SampleCells::copy(const std::uint8_t* from, std::uint8_t* to, int count) const {
  static_assert(sizeof(Words) == kBytes);
  if (count <= 0) return;
  const std::size_t size = bytes(count);
  if (step_ == 1) {
    std::memcpy(to, from, size);
    return;
  }
  const Words samples = load(samples_.data());
  std::size_t i = 0;
  for (; i + kBytes <= size; i += kBytes) {
    const Words words = joined(load(from + i), load(to + i), samples);
    std::memcpy(to + i, words.data(), kBytes);
  }
  for (std::size_t k = 0; i < size; ++i, ++k) {
    if (samples_[k] != 0) to[i] = from[i];
  }
}

void add_rows(const std::uint8_t* first, std::ptrdiff_t pitch, std::size_t bytes, int rows,
              std::uint16_t* __restrict sums) {
  assert(rows <= kMostRowsToAdd);
  std::fill_n(sums, bytes, std::uint16_t{0});
  for (int y = 0; y < rows; ++y) {
    const std::uint8_t* __restrict const row = first + y * pitch;
    for (std::size_t i = 0; i < bytes; ++i) sums[i] = static_cast<std::uint16_t>(sums[i] + row[i]);
  }
}

void fill_samples(std::uint8_t* first, int step, int count, std::uint8_t code) {
  if (step == 1) {
    std::memset(first, code, static_cast<std::size_t>(std::max(count, 0)));
    return;
  }
  for (int i = 0; i < count; ++i) first[static_cast<std::ptrdiff_t>(i) * step] = code;
}

}  // namespace framelane
