// Conversions on one thread, on random frames, beside the integer reference, swscale and, where it
// was found, libyuv. "cold" goes round sixteen frames, so that neither input nor output is in the
// cache, as in a feed. Beside each speed stands the share of samples that differ from the exact
// result; for the others' conversions, in whichever siting flatters them most.
#include <benchmark/benchmark.h>
#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/suites/cpu_peers.hpp"
#include "bench/suites/pictures.hpp"
#include "kernels/converter.hpp"
#include "kernels/reference.hpp"
#include "pipeline/frames/frame_pool.hpp"

namespace framelane {
namespace {

constexpr ColorSpec kRgb{.matrix = Matrix::kRgb, .range = Range::kFull};
constexpr ColorSpec k601{.matrix = Matrix::kBt601};
constexpr ColorSpec k601Full{.matrix = Matrix::kBt601, .range = Range::kFull};
constexpr ColorSpec k709{.matrix = Matrix::kBt709};

struct Pair {
  const char* name;
  PixelFormat source;
  ColorSpec source_color;
  PixelFormat target;
  ColorSpec target_color;

  Conversion at(int width, int height) const {
    return {width, height, source, source_color, target, target_color};
  }
};
const std::array kPairs{
    Pair{"bgra_to_i420", PixelFormat::kBgra, kRgb, PixelFormat::kI420, k709},
    Pair{"bgra_to_nv12", PixelFormat::kBgra, kRgb, PixelFormat::kNv12, k709},
    Pair{"bgra_to_i422", PixelFormat::kBgra, kRgb, PixelFormat::kI422, k709},
    Pair{"bgra_to_i444", PixelFormat::kBgra, kRgb, PixelFormat::kI444, k709},
    Pair{"bgra_to_packed_yuv444", PixelFormat::kBgra, kRgb, PixelFormat::kYuv444, k709},
    Pair{"bgr24_to_i420", PixelFormat::kBgr24, kRgb, PixelFormat::kI420, k709},
    Pair{"i444_to_i420", PixelFormat::kI444, k601, PixelFormat::kI420, k601},
    Pair{"i422_to_i420", PixelFormat::kI422, k601, PixelFormat::kI420, k601},
    Pair{"yuyv_to_i420", PixelFormat::kYuyv, k601, PixelFormat::kI420, k601},
    Pair{"i420_full_to_limited", PixelFormat::kI420, k601Full, PixelFormat::kI420, k601},
    Pair{"i420_601_to_709", PixelFormat::kI420, k601, PixelFormat::kI420, k709},
    Pair{"yuyv_to_i422", PixelFormat::kYuyv, k601, PixelFormat::kI422, k601},
    Pair{"i420_to_nv12", PixelFormat::kI420, k601, PixelFormat::kNv12, k601},
    Pair{"nv12_to_i420", PixelFormat::kNv12, k601, PixelFormat::kI420, k601},
};

using Run = bench::Convert;

/// One way to do a conversion. `color` is what it makes of it.
struct Contender {
  std::string name;
  ColorSpec color;
  std::function<Run(const Conversion&)> prepare;
};

Run run_converter(std::shared_ptr<const Converter> converter) {
  return [converter = std::move(converter)](const ConstImageView& source, const ImageView& target) {
    converter->run(source, target, 0, source.height);
  };
}

// `target` is one of Highway's HWY_… bits, or 0 for the best.
Contender ours(const Pair& pair, std::string name, std::int64_t target, Stores stores) {
  return {std::move(name), pair.target_color, [=](const Conversion& conversion) {
            hwy::SetSupportedTargetsForTest(target);
            hwy::GetChosenTarget().Update(hwy::SupportedTargets());
            Run run = run_converter(Converter::make(conversion, stores));
            hwy::SetSupportedTargetsForTest(0);
            hwy::GetChosenTarget().Update(hwy::SupportedTargets());
            return run;
          }};
}

Contender reference(const Pair& pair) {
  return {"reference", pair.target_color, [](const Conversion& conversion) {
            return run_converter(make_reference_converter(conversion));
          }};
}

std::vector<Contender> contenders(const Pair& pair) {
  std::vector<Contender> result{
      ours(pair, "framelane", 0, Stores::kCached),
      ours(pair, "framelane_AVX2", HWY_AVX2, Stores::kCached),
      ours(pair, "framelane_streaming", 0, Stores::kStreaming),
      ours(pair, "framelane_AVX2_streaming", HWY_AVX2, Stores::kStreaming), reference(pair)};
  const Conversion any = pair.at(64, 64);
  if (bench::make_swscale(any)) {
    result.push_back({"swscale", pair.target_color, bench::make_swscale});
  }
  if (bench::make_libyuv(any))
    result.push_back({"libyuv", bench::kLibyuvColor, bench::make_libyuv});
  return result;
}

/// `count` source frames of random bytes and as many targets.
struct Frames {
  Frames(const Pair& pair, int width, int height, int count) {
    std::mt19937_64 random(1);
    for (int i = 0; i < count; ++i) {
      sources.push_back(allocate_image(pool, pair.source, width, height));
      targets.push_back(allocate_image(target_pool, pair.target, width, height));
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

double percent_off(const Contender& contender, const Pair& pair) {
  constexpr int kWidth = 640, kHeight = 480;
  Frames frames(pair, kWidth, kHeight, 1);
  const ImageView result = frames.targets[0].image;
  const ConstImageView source = as_const(frames.sources[0].image);
  contender.prepare(pair.at(kWidth, kHeight))(source, result);
  Conversion conversion = pair.at(kWidth, kHeight);
  conversion.target_color = contender.color;
  return 100 * bench::best_accuracy_of(conversion, source, as_const(result)).share_off;
}

void measure(benchmark::State& state, const Contender& contender, const Pair& pair, int width,
             int height, int frames_in_turn, double off) {
  Frames frames(pair, width, height, frames_in_turn);
  const Run run = contender.prepare(pair.at(width, height));
  std::size_t next = 0;
  for (auto _ : state) {
    run(as_const(frames.sources[next].image), frames.targets[next].image);
    next = (next + 1) % frames.sources.size();
  }
  state.counters["fps"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["off%"] = off;
}

}  // namespace
}  // namespace framelane

int main(int argc, char** argv) {
  using namespace framelane;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const Pair& pair : kPairs) {
    for (const Contender& contender : contenders(pair)) {
      const double off = percent_off(contender, pair);
      for (const auto& [size, width, height] :
           {std::tuple{"1080p", 1920, 1080}, std::tuple{"4K", 3840, 2160}}) {
        for (const auto& [buffers, count] : {std::pair{"warm", 1}, std::pair{"cold", 16}}) {
          const std::string name =
              std::string(pair.name) + '/' + size + '/' + buffers + '/' + contender.name;
          benchmark::RegisterBenchmark(name.c_str(), [=, &pair, w = width, h = height,
                                                      n = count](benchmark::State& state) {
            measure(state, contender, pair, w, h, n, off);
          })->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
