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
/// Of packets: 37 bytes a sample of FFV1 (FFmpeg's ffv1enc.c), with an alpha plane; 12 of MPEG-4 in
/// slices and of HuffYUV, measured.
constexpr std::int64_t kFfv1BytesPerPixel = 4 * 37;
constexpr std::int64_t kEncodedBytesPerPixel = 16;
constexpr std::int64_t kLeast = std::int64_t{256} << 20;
/// FFmpeg's own limit; most sizes in it are int.
constexpr std::int64_t kMost = std::numeric_limits<int>::max();

std::mutex g_mutex;  // guards what follows
std::int64_t g_largest = kLeast;
bool g_is_limited = false;

std::int64_t product(std::int64_t pixels, std::int64_t bytes_per_pixel) {
  return pixels > kMost / bytes_per_pixel ? kMost : pixels * bytes_per_pixel;
}

void allow(std::int64_t bytes, bool limits) {
  const std::lock_guard lock(g_mutex);
  g_is_limited = g_is_limited || limits;
  g_largest = std::max(g_largest, bytes);
  if (g_is_limited) av_max_alloc(static_cast<std::size_t>(g_largest));
}

}  // namespace

bool limits_av_allocations() {
  const std::lock_guard lock(g_mutex);
  return g_is_limited;
}

void allow_av_pictures(std::int64_t pixels) { allow(product(pixels, kBytesPerPixel), true); }

void allow_av_encoder(AVCodecID codec, std::int64_t pixels) {
  const bool ffv1 = codec == AV_CODEC_ID_FFV1;
  constexpr std::int64_t kHeaders = 1 << 20;
  const std::int64_t bytes = product(pixels, ffv1 ? kFfv1BytesPerPixel : kEncodedBytesPerPixel);
  allow(std::min(bytes + kHeaders, kMost), false);
}

}  // namespace framelane
