// Conversions on one thread, on random frames, beside the integer reference, swscale and, where it
// was found, libyuv. "cold" goes round sixteen frames, so that neither input nor output is in the
// cache, as in a feed. Beside each speed stands the share of samples that differ from the exact
// result; for the others' conversions, in whichever siting flatters them most.
#include <benchmark/benchmark.h>
#include <hwy/targets.h>

extern "C" {
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}
#ifdef FRAMELANE_LIBYUV
#include <libyuv.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/converter.hpp"
#include "kernels/reference.hpp"
#include "pipeline/frame_pool.hpp"

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

using Run = std::function<void(const ConstImageView&, const ImageView&)>;

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

template <typename Byte>
struct Planes {
  explicit Planes(const BasicImageView<Byte>& view) {
    for (std::size_t i = 0; i < kMaxPlanes; ++i) {
      data[i] = view.planes[i].data;
      pitch[i] = static_cast<int>(view.planes[i].pitch);
    }
  }
  std::array<Byte*, 4> data{};
  std::array<int, 4> pitch{};
};

const int* sws_matrix(Matrix matrix) {
  return sws_getCoefficients(matrix == Matrix::kBt709 ? SWS_CS_ITU709 : SWS_CS_ITU601);
}

Contender swscale(const Pair& pair) {
  return {"swscale", pair.target_color, [](const Conversion& c) {
            const std::shared_ptr<SwsContext> scaler(sws_alloc_context(), sws_freeContext);
            // The ranges have to be known before the context is made: it picks its path by them.
            const bool full_source = c.source_color.range == Range::kFull;
            const bool full_target = c.target_color.range == Range::kFull;
            for (const auto& [name, value] : {std::pair<const char*, int>{"srcw", c.width},
                                              {"srch", c.height},
                                              {"dstw", c.width},
                                              {"dsth", c.height},
                                              {"src_format", av_format(c.source)},
                                              {"dst_format", av_format(c.target)},
                                              {"src_range", full_source},
                                              {"dst_range", full_target},
                                              {"sws_flags", SWS_BICUBIC}}) {
              av_opt_set_int(scaler.get(), name, value, 0);
            }
            if (sws_init_context(scaler.get(), nullptr, nullptr) < 0) {
              throw std::runtime_error("swscale refuses the conversion");
            }
            sws_setColorspaceDetails(scaler.get(), sws_matrix(c.source_color.matrix), full_source,
                                     sws_matrix(c.target_color.matrix), full_target, 0, 1 << 16,
                                     1 << 16);
            return [scaler](const ConstImageView& source, const ImageView& target) {
              const Planes from(source);
              const Planes to(target);
              sws_scale(scaler.get(), from.data.data(), from.pitch.data(), 0, source.height,
                        to.data.data(), to.pitch.data());
            };
          }};
}

#ifdef FRAMELANE_LIBYUV
template <auto kConvert, std::size_t kSources, std::size_t kTargets>
void run_libyuv(const ConstImageView& source, const ImageView& target) {
  [&]<std::size_t... kSource, std::size_t... kTarget>(std::index_sequence<kSource...>,
                                                      std::index_sequence<kTarget...>) {
    const Planes from(source);
    const Planes to(target);
    std::apply(kConvert, std::tuple_cat(std::tuple(from.data[kSource], from.pitch[kSource])...,
                                        std::tuple(to.data[kTarget], to.pitch[kTarget])...,
                                        std::tuple(source.width, source.height)));
  }
  (std::make_index_sequence<kSources>(), std::make_index_sequence<kTargets>());
}

// libyuv knows BT.601 alone here, and no change of range.
Run libyuv_function(const Pair& pair) {
  const std::string name = pair.name;
  if (name == "bgra_to_i420") return run_libyuv<libyuv::ARGBToI420, 1, 3>;
  if (name == "bgra_to_nv12") return run_libyuv<libyuv::ARGBToNV12, 1, 2>;
  if (name == "bgra_to_i422") return run_libyuv<libyuv::ARGBToI422, 1, 3>;
  if (name == "bgra_to_i444") return run_libyuv<libyuv::ARGBToI444, 1, 3>;
  if (name == "bgr24_to_i420") return run_libyuv<libyuv::RGB24ToI420, 1, 3>;
  if (name == "i444_to_i420") return run_libyuv<libyuv::I444ToI420, 3, 3>;
  if (name == "i422_to_i420") return run_libyuv<libyuv::I422ToI420, 3, 3>;
  if (name == "yuyv_to_i420") return run_libyuv<libyuv::YUY2ToI420, 1, 3>;
  if (name == "yuyv_to_i422") return run_libyuv<libyuv::YUY2ToI422, 1, 3>;
  if (name == "i420_to_nv12") return run_libyuv<libyuv::I420ToNV12, 3, 2>;
  if (name == "nv12_to_i420") return run_libyuv<libyuv::NV12ToI420, 2, 3>;
  return nullptr;
}
#endif

std::vector<Contender> contenders(const Pair& pair) {
  std::vector<Contender> result{
      ours(pair, "framelane", 0, Stores::kCached),
      ours(pair, "framelane_AVX2", HWY_AVX2, Stores::kCached),
      ours(pair, "framelane_streaming", 0, Stores::kStreaming),
      ours(pair, "framelane_AVX2_streaming", HWY_AVX2, Stores::kStreaming), reference(pair)};
  if (av_format(pair.target) != AV_PIX_FMT_NONE) result.push_back(swscale(pair));
#ifdef FRAMELANE_LIBYUV
  if (Run run = libyuv_function(pair)) {
    result.push_back({"libyuv", k601, [run](const Conversion&) { return run; }});
  }
#endif
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
  FramePool pool;
  const PooledImage exact = allocate_image(pool, pair.target, kWidth, kHeight);
  const ImageView result = frames.targets[0].image;
  contender.prepare(pair.at(kWidth, kHeight))(as_const(frames.sources[0].image), result);

  std::size_t least = SIZE_MAX;
  std::size_t samples = 0;
  for (const Siting siting : {Siting::kLeft, Siting::kCenter, Siting::kTopLeft}) {
    Conversion conversion = pair.at(kWidth, kHeight);
    conversion.target_color = contender.color;
    conversion.target_color.siting = conversion.source_color.siting = siting;
    convert_reference(conversion, as_const(frames.sources[0].image), exact.image);
    std::size_t off = 0;
    samples = 0;
    for (int plane = 0; plane < info(pair.target).plane_count; ++plane) {
      const std::size_t bytes = plane_row_bytes(pair.target, plane, kWidth);
      for (int y = 0; y < plane_rows(pair.target, plane, kHeight); ++y, samples += bytes) {
        for (std::size_t x = 0; x < bytes; ++x) {
          off += result.row(plane, y)[x] != exact.image.row(plane, y)[x];
        }
      }
    }
    least = std::min(least, off);
  }
  return 100.0 * static_cast<double>(least) / static_cast<double>(samples);
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
