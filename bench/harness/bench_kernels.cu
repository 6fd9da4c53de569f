#include "bench/harness/bench_kernels.hpp"

#include "bench/harness/device_code.hpp"
#include "kernels/cuda/arithmetic.cuh"

namespace framelane::bench {
namespace {

constexpr int kQuad = 4;

/// A thread makes twelve bytes of four pixels, in three stores.
struct Classic {
  const std::uint8_t* source;
  std::uint8_t* target;
  std::ptrdiff_t source_pitch, target_pitch;
  int width;

  FRAMELANE_HD void operator()(cuda::ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x) * kQuad;
    if (x >= width) return;
    const std::uint8_t* from = source + thread.y * source_pitch + x * 4;
    std::uint8_t* to = target + thread.y * target_pitch + x * 3;
    if (x + kQuad > width) {
      for (int i = 0; i < width - x; ++i) {
        const Yuv yuv = of(cuda::load<std::uint32_t>(from + i * 4));
        to[i * 3] = yuv.y;
        to[i * 3 + 1] = yuv.u;
        to[i * 3 + 2] = yuv.v;
      }
      return;
    }
    const auto four = cuda::load<uint4>(from);
    const Yuv a = of(four.x), b = of(four.y), c = of(four.z), d = of(four.w);
    cuda::store(to, word(a.y, a.u, a.v, b.y));
    cuda::store(to + 4, word(b.u, b.v, c.y, c.u));
    cuda::store(to + 8, word(c.v, d.y, d.u, d.v));
  }

 private:
  FRAMELANE_HD static Yuv of(std::uint32_t bgra) {
    return classic_yuv(static_cast<int>(bgra >> 16 & 0xFF), static_cast<int>(bgra >> 8 & 0xFF),
                       static_cast<int>(bgra & 0xFF));
  }
  FRAMELANE_HD static std::uint32_t word(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                         std::uint32_t d) {
    return a | b << 8 | c << 16 | d << 24;
  }
};

/// A thread makes one pixel, with a load and a store for each byte.
struct PixelAThread {
  cuda::Quotient samples[3];  // y, u, v
  const std::uint8_t* source;
  std::ptrdiff_t source_pitch;
  std::uint8_t* targets[3];  // the first pixel's y, u, v
  std::ptrdiff_t target_pitch;
  int step;  // bytes from one y to the next
  int width;

  FRAMELANE_HD void operator()(cuda::ThreadIndex thread) const {
    const int x = static_cast<int>(thread.x);
    if (x >= width) return;
    const std::uint8_t* from = source + thread.y * source_pitch + 4 * x;
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t sample = samples[i](from[0], from[1], from[2]);
      targets[i][thread.y * target_pitch + step * x] =
          static_cast<std::uint8_t>(cuda::at_most(static_cast<int>(sample), 255));
    }
  }
};

struct Add {
  const float* a;
  const float* b;
  float* c;
  std::size_t count;

  FRAMELANE_HD void operator()(cuda::ThreadIndex thread) const {
    if (thread.x < count) c[thread.x] = a[thread.x] + b[thread.x];
  }
};

struct Mix {
  const std::uint32_t* from;
  std::uint32_t* to;
  std::size_t count;
  int steps;

  FRAMELANE_HD void operator()(cuda::ThreadIndex thread) const {
    if (thread.x < count) to[thread.x] = mix_word(from[thread.x], steps);
  }
};

template <typename Body>
cudaError_t launch_line(std::size_t count, cudaStream_t stream, const Body& body) {
  return cuda::launch<cuda::Residency::kAny>(static_cast<int>(count), 1, 1, stream, body);
}

}  // namespace

cudaError_t enqueue_classic(const ConstImageView& source, const ImageView& target, int row_begin,
                            int row_end, cudaStream_t stream) {
  const Classic body{source.row(0, row_begin), target.row(0, row_begin), source.planes[0].pitch,
                     target.planes[0].pitch, source.width};
  return cuda::launch<cuda::Residency::kAny>((source.width + kQuad - 1) / kQuad,
                                             row_end - row_begin, 1, stream, body);
}

cudaError_t enqueue_pixel_a_thread(const Conversion& conversion, const ConstImageView& source,
                                   const ImageView& target, cudaStream_t stream) {
  const auto forms = color_transform(conversion.source_color, conversion.target_color);
  const bool packed = target.format == PixelFormat::kYuv444;
  PixelAThread body{};
  for (std::size_t i = 0; i < 3; ++i) {
    body.samples[i] = cuda::make_quotient(forms[i], 1, true);
    body.targets[i] = packed ? target.planes[0].data + i : target.planes[i].data;
  }
  body.source = source.planes[0].data;
  body.source_pitch = source.planes[0].pitch;
  body.target_pitch = target.planes[0].pitch;
  body.step = packed ? 3 : 1;
  body.width = source.width;
  return cuda::launch<cuda::Residency::kAny>(source.width, source.height, 1, stream, body);
}

cudaError_t enqueue_add(const float* a, const float* b, float* c, std::size_t count,
                        cudaStream_t stream) {
  return launch_line(count, stream, Add{a, b, c, count});
}

cudaError_t enqueue_mix(const std::uint32_t* from, std::uint32_t* to, std::size_t count, int steps,
                        cudaStream_t stream) {
  return launch_line(count, stream, Mix{from, to, count, steps});
}

}  // namespace framelane::bench
