#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/image_view.hpp"

namespace framelane {

/// The number of values that an 8-bit sample can have.
inline constexpr std::size_t kLumaValues = 256;

/// How many of a frame's luma samples have each code value. Exact: the same on the CPU and the GPU,
/// and for any division of the frame into bands.
struct LumaHistogram {
  std::array<std::uint32_t, kLumaValues> counts{};  ///< the largest frame has 16384x16384 samples

  std::uint64_t samples() const;
  std::uint64_t sum() const;
  // The following require at least one sample.
  int minimum() const;
  int maximum() const;
  double mean() const;

  friend bool operator==(const LumaHistogram&, const LumaHistogram&) = default;
};
static_assert(sizeof(LumaHistogram) == kLumaValues * sizeof(std::uint32_t) &&
                  std::is_trivially_copyable_v<LumaHistogram>,
              "a GPU copies its counts into one");

/// True if frames of the format have luma samples, which RGB has not.
bool has_luma(PixelFormat format);

/// Adds the luma samples of rows [row_begin, row_end) to `histogram`. Requires
/// has_luma(image.format). Fastest with ten thousand samples per call or more. Any thread, with a
/// histogram of its own.
void count_luma(const ConstImageView& image, int row_begin, int row_end, LumaHistogram& histogram);

}  // namespace framelane
