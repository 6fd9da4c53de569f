#include "kernels/cuda/luma_count.hpp"

#include <cassert>

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/counting.cuh"
#include "kernels/cuda/samples.cuh"

namespace framelane {
namespace {

using namespace cuda;

/// Counts the luma of a picture in memory. A thread's turn is sixteen samples of a row.
struct CountLuma {
  static constexpr int kColumns = 16;

  Samples2d<const std::uint8_t> luma;
  int row_begin;
  bool aligned;  ///< samples are side by side, in rows that begin at multiples of 16 bytes

  struct Input {
    uint4 samples;
    int count;
  };
  FRAMELANE_HD Input read(ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x) * kColumns;
    const int y = row_begin + static_cast<int>(thread.y);
    const int count = at_most(luma.width - x, kColumns);
    if (aligned && count == kColumns) return {load<uint4>(&luma.at(x, y)), count};
    std::uint32_t words[4] = {};
    FRAMELANE_UNROLL
    for (int i = 0; i < kColumns; ++i) {
      if (i < count) words[i / 4] |= std::uint32_t{luma.at(x + i, y)} << i % 4 * 8;
    }
    return {{words[0], words[1], words[2], words[3]}, count};
  }
  FRAMELANE_HD void operator()(ThreadIndex, const Input& input, LumaCount count) const {
    count(input.samples.x, at_most(input.count, 4));
    count(input.samples.y, at_most(input.count - 4, 4));
    count(input.samples.z, at_most(input.count - 8, 4));
    count(input.samples.w, at_most(input.count - 12, 4));
  }
};

}  // namespace

cudaError_t enqueue_luma_count(const ConstImageView& image, int row_begin, int row_end,
                               std::uint32_t* counts, cudaStream_t stream) {
  assert(has_luma(image.format));
  Samples2d<const std::uint8_t> channel[3];
  locate(image, channel);
  const Samples2d<const std::uint8_t>& luma = channel[0];
  const auto place =
      reinterpret_cast<std::uintptr_t>(luma.data) | static_cast<std::uintptr_t>(luma.pitch);
  const CountLuma body{luma, row_begin, luma.step == 1 && place % CountLuma::kColumns == 0};
  return launch_counting((image.width + CountLuma::kColumns - 1) / CountLuma::kColumns,
                         row_end - row_begin, stream, body, counts);
}

cudaError_t load_luma_count() { return load_counting<CountLuma>(); }

}  // namespace framelane
