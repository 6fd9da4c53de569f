#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace framelane {

/// Samples of channels that lie in the same plane, as in NV12's U and V, or in a pixel of BGRA: the
/// plane is cells of `step` bytes (1 to 4), and the samples are some bytes of each.
class SampleCells {
 public:
  explicit SampleCells(int step) : step_(step) {}
  /// That byte of each cell is a sample.
  void add(int offset);

  /// From the first cell's first byte to the last sample of `count` cells, which is at least 1.
  std::size_t bytes(int count) const {
    return static_cast<std::size_t>(count - 1) * static_cast<std::size_t>(step_) +
           static_cast<std::size_t>(last_) + 1;
  }
  /// Copies the samples of `count` cells. What lies between samples stays as it is; nothing before
  /// the first cell or behind the last sample is touched.
  void copy(const std::uint8_t* from, std::uint8_t* to, int count) const;

 private:
  static constexpr std::size_t kBytes = 24;  // in which cells of every size repeat
  const int step_;
  int last_ = 0;
  std::array<std::uint8_t, kBytes> samples_{};  // 255: a sample
};

/// Sums of columns: of up to 257 rows of `bytes` bytes, `pitch` apart.
void add_rows(const std::uint8_t* first, std::ptrdiff_t pitch, std::size_t bytes, int rows,
              std::uint16_t* sums);
inline constexpr int kMostRowsToAdd = 257;

/// Sets `count` samples that lie `step` bytes apart.
void fill_samples(std::uint8_t* first, int step, int count, std::uint8_t code);

}  // namespace framelane
