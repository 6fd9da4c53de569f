#include "pipeline/av/allocation_limit.hpp"

extern "C" {
#include <libavutil/mem.h>
}

#include <algorithm>
#include <cstddef>
#include <limits>
#include <mutex>

namespace framelane {
namespace {

constexpr std::int64_t kBytesPerPixel = 4;
constexpr std::int64_t kLeast = std::int64_t{256} << 20;

}  // namespace

void allow_av_pictures(std::int64_t pixels) {
  static std::mutex mutex;
  static std::int64_t largest = 0;
  const std::lock_guard lock(mutex);
  if (pixels <= largest) return;
  largest = pixels;
  // FFmpeg's own limit; most sizes in it are int.
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const std::int64_t bytes = pixels > kMost / kBytesPerPixel ? kMost : pixels * kBytesPerPixel;
  av_max_alloc(static_cast<std::size_t>(std::max(bytes, kLeast)));
}

}  // namespace framelane
