// Stands in for NPP where the stand-in runtime stands in for CUDA: "device" memory is the host's,
// and what comes before on the stream is done by the time it is called. It takes each block's mean
// and rounds down. With FRAMELANE_FAKE_NPP_STATUS in the environment it does nothing and returns
// that.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

struct Context {
  void* stream;
  int device, multiprocessors, threads_per_multiprocessor, threads_per_block;
  std::size_t shared_bytes_per_block;
  int major, minor;
  unsigned stream_flags;
  int reserved;
};
struct ImageSize {
  int width, height;
};
struct ImageRect {
  int x, y, width, height;
};

std::uint8_t weigh(const int (&bgr)[3], int b, int g, int r, int offset) {
  return static_cast<std::uint8_t>(((b * bgr[0] + g * bgr[1] + r * bgr[2]) >> 8) + offset);
}

}  // namespace

/// Takes the nearest pixel.
extern "C" int nppiResize_8u_C4R_Ctx(const std::uint8_t* source, int source_pitch, ImageSize size,
                                     ImageRect, std::uint8_t* target, int target_pitch,
                                     ImageSize target_size, ImageRect, int, Context context) {
  if (const char* status = std::getenv("FRAMELANE_FAKE_NPP_STATUS")) return std::atoi(status);
  if (context.stream == nullptr || context.multiprocessors <= 0) return -1;
  for (int y = 0; y < target_size.height; ++y) {
    const std::uint8_t* const from =
        source + static_cast<std::ptrdiff_t>(y * size.height / target_size.height) * source_pitch;
    std::uint8_t* const to = target + static_cast<std::ptrdiff_t>(y) * target_pitch;
    for (int x = 0; x < 4 * target_size.width; ++x) {
      to[x] = from[x / 4 * size.width / target_size.width * 4 + x % 4];
    }
  }
  return 0;
}

extern "C" int nppiBGRToYCbCr420_8u_AC4P3R_Ctx(const std::uint8_t* source, int source_pitch,
                                               std::uint8_t** targets, int* pitches, ImageSize size,
                                               Context context) {
  if (const char* status = std::getenv("FRAMELANE_FAKE_NPP_STATUS")) return std::atoi(status);
  if (context.stream == nullptr || context.multiprocessors <= 0) return -1;
  const auto pixel = [&](int x, int y) {
    return source + static_cast<std::ptrdiff_t>(y) * source_pitch + 4 * x;
  };
  const auto sample = [&](int plane, int x, int y) -> std::uint8_t& {
    return targets[plane][static_cast<std::ptrdiff_t>(y) * pitches[plane] + x];
  };
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const std::uint8_t* const bgra = pixel(x, y);
      sample(0, x, y) = weigh({bgra[0], bgra[1], bgra[2]}, 25, 129, 66, 16);
      if (x % 2 == 1 || y % 2 == 1) continue;
      int mean[3]{};
      for (int channel = 0; channel < 3; ++channel) {
        for (int i = 0; i < 4; ++i) {
          const int at_x = x + i % 2 < size.width ? x + i % 2 : x;
          const int at_y = y + i / 2 < size.height ? y + i / 2 : y;
          mean[channel] += pixel(at_x, at_y)[channel];
        }
        mean[channel] /= 4;
      }
      sample(1, x / 2, y / 2) = weigh(mean, 112, -74, -38, 128);
      sample(2, x / 2, y / 2) = weigh(mean, -18, -94, 112, 128);
    }
  }
  return 0;
}
