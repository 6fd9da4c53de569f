// Conversions on one thread, on random frames, beside swscale in the same run. "cold" goes round
// sixteen frames, so that neither input nor output is in the cache, as in a feed.
#include <benchmark/benchmark.h>

extern "C" {
#include <libswscale/swscale.h>
}

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/converter.hpp"
#include "pipeline/frame_pool.hpp"

namespace framelane {
namespace {

struct Size {
  const char* name;
  int width;
  int height;
};
constexpr std::array kSizes{Size{"1080p", 1920, 1080}, Size{"4K", 3840, 2160}};

struct Pair {
  const char* name;
  PixelFormat source;
  ColorSpec source_color;
  PixelFormat target;
  ColorSpec target_color;
};
constexpr ColorSpec kRgb{.matrix = Matrix::kRgb, .range = Range::kFull};
constexpr ColorSpec k601{.matrix = Matrix::kBt601};
constexpr ColorSpec k601Full{.matrix = Matrix::kBt601, .range = Range::kFull};
constexpr ColorSpec k709{.matrix = Matrix::kBt709};

const std::array kPairs{
    Pair{"bgra_to_i420", PixelFormat::kBgra, kRgb, PixelFormat::kI420, k709},
    Pair{"bgra_to_nv12", PixelFormat::kBgra, kRgb, PixelFormat::kNv12, k709},
    Pair{"bgra_to_i444", PixelFormat::kBgra, kRgb, PixelFormat::kI444, k709},
    Pair{"bgra_to_packed_yuv444", PixelFormat::kBgra, kRgb, PixelFormat::kYuv444, k709},
    Pair{"i420_full_to_limited", PixelFormat::kI420, k601Full, PixelFormat::kI420, k601},
    Pair{"i420_601_to_709", PixelFormat::kI420, k601, PixelFormat::kI420, k709},
    Pair{"yuyv_to_i422", PixelFormat::kYuyv, k601, PixelFormat::kI422, k601},
    Pair{"i420_to_nv12", PixelFormat::kI420, k601, PixelFormat::kNv12, k601},
};

/// `count` source frames of random bytes and as many targets.
struct Frames {
  Frames(const Pair& pair, const Size& size, int count) {
    std::mt19937_64 random(1);
    for (int i = 0; i < count; ++i) {
      sources.push_back(allocate_image(pool, pair.source, size.width, size.height));
      targets.push_back(allocate_image(target_pool, pair.target, size.width, size.height));
      AVBufferRef& buffer = *sources.back().buffer.get();
      for (std::size_t at = 0; at + 8 <= buffer.size; at += 8) {
        const std::uint64_t value = random();
        std::memcpy(buffer.data + at, &value, sizeof value);
      }
    }
  }

  FramePool pool;
  FramePool target_pool;
  std::vector<PooledImage> sources;
  std::vector<PooledImage> targets;
};

void run_ours(benchmark::State& state, const Pair& pair, const Size& size, int frames_in_turn) {
  Frames frames(pair, size, frames_in_turn);
  const std::unique_ptr<const Converter> converter = Converter::make(
      {size.width, size.height, pair.source, pair.source_color, pair.target, pair.target_color});
  std::size_t next = 0;
  for (auto _ : state) {
    converter->run(as_const(frames.sources[next].image), frames.targets[next].image, 0,
                   size.height);
    next = (next + 1) % frames.sources.size();
  }
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(converter->name());
}

struct SwsDeleter {
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};

void run_swscale(benchmark::State& state, const Pair& pair, const Size& size, int frames_in_turn) {
  Frames frames(pair, size, frames_in_turn);
  const std::unique_ptr<SwsContext, SwsDeleter> scaler(
      sws_getContext(size.width, size.height, av_format(pair.source), size.width, size.height,
                     av_format(pair.target), SWS_BICUBIC, nullptr, nullptr, nullptr));
  std::size_t next = 0;
  for (auto _ : state) {
    const ImageView& from = frames.sources[next].image;
    const ImageView& to = frames.targets[next].image;
    std::array<const std::uint8_t*, 4> source{};
    std::array<std::uint8_t*, 4> target{};
    std::array<int, 4> source_pitch{};
    std::array<int, 4> target_pitch{};
    for (int plane = 0; plane < kMaxPlanes; ++plane) {
      source[plane] = from.planes[plane].data;
      source_pitch[plane] = static_cast<int>(from.planes[plane].pitch);
      target[plane] = to.planes[plane].data;
      target_pitch[plane] = static_cast<int>(to.planes[plane].pitch);
    }
    sws_scale(scaler.get(), source.data(), source_pitch.data(), 0, size.height, target.data(),
              target_pitch.data());
    next = (next + 1) % frames.sources.size();
  }
  state.SetItemsProcessed(state.iterations());
  state.SetLabel("swscale, bicubic, default accuracy");
}

using Run = void (*)(benchmark::State&, const Pair&, const Size&, int);

void add(const char* who, Run run, const Pair& pair, const Size& size) {
  for (const auto& [buffers, count] : {std::pair{"warm", 1}, std::pair{"cold", 16}}) {
    const std::string name = std::string(pair.name) + '/' + size.name + '/' + buffers + '/' + who;
    benchmark::RegisterBenchmark(name.c_str(), [=, &pair, &size](benchmark::State& state) {
      run(state, pair, size, count);
    })->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace framelane

int main(int argc, char** argv) {
  using namespace framelane;
  for (const Size& size : kSizes) {
    for (const Pair& pair : kPairs) {
      add("framelane", run_ours, pair, size);
      if (av_format(pair.target) != AV_PIX_FMT_NONE) add("swscale", run_swscale, pair, size);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
