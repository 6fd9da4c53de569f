#include "kernels/cuda/luma_count.hpp"

#include <cassert>

#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/counting.cuh"
#include "kernels/cuda/samples.cuh"

namespace framelane {
namespace {

using namespace cuda;

/// Counts the luma of a picture that is in memory: sixteen samples of a row to a thread.
struct CountLuma {
  static constexpr int kColumns = 16;

  Samples2d<const std::uint8_t> luma;
  int row_begin;
  bool aligned;  ///< samples side by side in rows that begin at multiples of 16

  template <typename Count>
  FRAMELANE_HD void operator()(ThreadIndex thread, Count count) const {
    const int x = static_cast<int>(thread.x) * kColumns;
    const int y = row_begin + static_cast<int>(thread.y);
    if (aligned && x + kColumns <= luma.width) {
      const auto samples = load<uint4>(&luma.at(x, y));
      count(samples.x, 4);
      count(samples.y, 4);
      count(samples.z, 4);
      count(samples.w, 4);
      return;
    }
    for (int i = x; i < at_most(x + kColumns, luma.width); ++i) count(luma.at(i, y), 1);
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
