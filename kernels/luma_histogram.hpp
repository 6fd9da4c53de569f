#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/image_view.hpp"

namespace framelane {

/// Code values of 8-bit samples.
inline constexpr std::size_t kLumaValues = 256;

/// How many of a frame's luma samples have each code value: exact, and the same however the frame
/// was converted and cut into bands. Everything else about its brightness follows from it.
struct LumaHistogram {
  std::array<std::uint32_t, kLumaValues> counts{};  ///< enough for the largest frame, 16384x16384

  std::uint64_t samples() const;
  std::uint64_t sum() const;
  // Require a sample.
  int minimum() const;
  int maximum() const;
  double mean() const;

  friend bool operator==(const LumaHistogram&, const LumaHistogram&) = default;
};
static_assert(sizeof(LumaHistogram) == kLumaValues * sizeof(std::uint32_t) &&
                  std::is_trivially_copyable_v<LumaHistogram>,
              "a GPU copies its counts into one");

/// Whether frames of the format have luma samples: those of RGB have none.
bool has_luma(PixelFormat format);

/// Adds the luma samples of rows [row_begin, row_end). Requires has_luma(image.format). Fastest
/// for some ten thousand samples a call or more. Any number of threads, each with a histogram of
/// its own.
void count_luma(const ConstImageView& image, int row_begin, int row_end, LumaHistogram& histogram);

}  // namespace framelane
