#include "bench/suites/luma.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "bench/stage_feed.hpp"
#include "bench/suites/pictures.hpp"
#include "kernels/converter.hpp"
#include "pipeline/cpu_stage.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/suites/gpu_part.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/cuda/luma_count.hpp"
#include "pipeline/cuda/cuda_plan.hpp"
#include "pipeline/cuda/image_copy.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr const char* kUnit = "ms per 1000";
constexpr const char* kSize = "size";
constexpr const char* kCpu = "CPU, BGRA to NV12";
constexpr const char* kCpuCounting = "CPU, BGRA to NV12 and luma";
constexpr const char* kGpu = "GPU, BGRA to NV12";
constexpr const char* kGpuCounting = "GPU, BGRA to NV12 and luma in one kernel";
constexpr const char* kGpuAfterwards = "GPU, BGRA to NV12, then luma";

/// Read and written.
double frame_bytes(const Conversion& convert) {
  const Size size{"", convert.width, convert.height};
  return static_cast<double>(image_bytes(convert.source, size) + image_bytes(convert.target, size));
}

Row make_row(const char* name, const Conversion& convert) {
  return {.name = name,
          .parameters = {{kSize, fmt::format("{}x{}", convert.width, convert.height)}},
          .bytes = 1000 * frame_bytes(convert),
          .unit = kUnit};
}

}  // namespace

struct LumaWork::Cpu {
  Cpu(const Session& session, int width, int height)
      : convert(conversion(PixelFormat::kBgra, PixelFormat::kNv12, {"", width, height})),
        source(make_source(session)),
        target(allocate_image(targets, convert.target, width, height)),
        converter(Converter::make(convert)),
        expected(reference_result(convert, as_const(source.image))),
        expected_luma(luma_of(as_const(expected.image))) {}

  PooledImage make_source(const Session& session) {
    const Size size{"", convert.width, convert.height};
    require_memory(session,
                   image_bytes(convert.source, size) + 2 * image_bytes(convert.target, size),
                   "--size");
    return make_frames(sources, convert.source, size, 1).front();
  }

  Contender contender(const char* name, bool counts) {
    return {make_row(name, convert),
            [this] {
              spoil(target.image);
              luma = {};
            },
            [this, counts] {
              return 1000 * milliseconds([this, counts] {
                       const ConstImageView from = as_const(source.image);
                       if (counts) return convert_and_count(*converter, from, target.image, luma);
                       converter->run(from, target.image, 0, convert.height);
                     });
            },
            [this, counts] {
              const std::string wrong =
                  first_difference(as_const(expected.image), as_const(target.image));
              return wrong.empty() && counts && luma != expected_luma
                         ? "its luma is counted wrongly"
                         : wrong;
            }};
  }

  const Conversion convert;
  FramePool sources, targets;
  const PooledImage source, target;
  const std::unique_ptr<const Converter> converter;
  const PlainImage expected;
  const LumaHistogram expected_luma;
  LumaHistogram luma;
};

#ifdef FRAMELANE_WITH_CUDA

/// Frames go round more memory than the second-level cache holds.
struct LumaWork::Gpu {
  Gpu(CudaContext& context, const Cpu& cpu_part)
      : cpu(cpu_part),
        converter(CudaConverter::make(cpu.convert)),
        counts_memory(sizeof(LumaHistogram), context.memory_stream(), context.memory_bytes) {
    const double frame = frame_bytes(cpu.convert);
    const int images =
        static_cast<int>(std::clamp(4.0 * attribute(cudaDevAttrL2CacheSize) / frame, 2.0, 64.0));
    for (int i = 0; i < images; ++i) {
      from.emplace_back(context, cpu.convert.source, cpu.convert.width, cpu.convert.height);
      to.emplace_back(context, cpu.convert.target, cpu.convert.width, cpu.convert.height);
    }
    context.memory_stream().synchronize();
    for (const DeviceImage& image : from) {
      copy_rows(as_const(cpu.source.image), image.image, 0, cpu.convert.height,
                cudaMemcpyHostToDevice, streams[0]);
    }
    streams.synchronize(1);
  }

  std::uint32_t* counts() const { return reinterpret_cast<std::uint32_t*>(counts_memory.data()); }

  void enqueue(std::size_t i, std::uint32_t* to_counts) const {
    const CudaFrame frame{as_const(from[i].image), to[i].image, to_counts};
    cuda::check(converter->enqueue({&frame, 1}, 0, cpu.convert.height, streams[0].get()),
                "cudaLaunchKernel");
  }

  std::vector<Contender> contenders() {
    return {contender(kGpu, false, [this](std::size_t i) { enqueue(i, nullptr); }),
            contender(kGpuCounting, true, [this](std::size_t i) { enqueue(i, counts()); }),
            contender(kGpuAfterwards, true, [this](std::size_t i) {
              enqueue(i, nullptr);
              cuda::check(enqueue_luma_count(as_const(to[i].image), 0, cpu.convert.height, counts(),
                                             streams[0].get()),
                          "cudaLaunchKernel");
            })};
  }

  Contender contender(const char* name, bool counting, std::function<void(std::size_t)> work) {
    return {make_row(name, cpu.convert), [this] { spoil_results(); },
            [this, work = std::move(work)] { return time(work); },
            [this, counting] { return check(counting); }};
  }

  /// On the GPU's own clock, of frames that follow one another.
  double time(const std::function<void(std::size_t)>& work) {
    const std::size_t frames = std::max<std::size_t>(from.size(), 16);
    begin.record(streams[0]);
    for (std::size_t i = 0; i < frames; ++i) work(i % from.size());
    end.record(streams[0]);
    end.synchronize();
    converted += frames;
    return 1000 * std::chrono::duration<double, std::milli>(end.since(begin)).count() /
           static_cast<double>(frames);
  }

  void spoil_results() {
    const auto clear = [this](void* at, std::size_t bytes) {
      cuda::check(cudaMemsetAsync(at, 0, bytes, streams[0].get()), "cudaMemsetAsync");
    };
    for (const DeviceImage& image : to) clear(image.memory.data(), image.memory.bytes());
    clear(counts(), sizeof(LumaHistogram));
    streams.synchronize(1);
    converted = 0;
  }
  std::string check(bool counting) {
    for (const DeviceImage& image : to) {
      copy_rows(as_const(image.image), cpu.target.image, 0, cpu.convert.height,
                cudaMemcpyDeviceToHost, streams[0]);
      streams.synchronize(1);
      const std::string wrong =
          first_difference(as_const(cpu.expected.image), as_const(cpu.target.image));
      if (!wrong.empty()) return wrong;
    }
    if (!counting) return {};
    LumaHistogram got, expected = cpu.expected_luma;
    copy(&got, counts(), sizeof got, cudaMemcpyDeviceToHost, streams[0].get());
    streams.synchronize(1);
    // Of all frames together, modulo 2^32.
    for (std::uint32_t& count : expected.counts) count *= static_cast<std::uint32_t>(converted);
    return got == expected ? "" : "its luma is counted wrongly";
  }

  const Cpu& cpu;
  const std::unique_ptr<const CudaConverter> converter;
  std::vector<DeviceImage> from, to;
  const DeviceMemory counts_memory;
  std::size_t converted = 0;
  CudaEvent begin{CudaEvent::Kind::kTime}, end{CudaEvent::Kind::kTime};
  Streams streams{1};  // the first to go
};

#else

struct LumaWork::Gpu {};

#endif

LumaWork::LumaWork(const Session& session, int width, int height)
    : cpu_(std::make_unique<Cpu>(session, width, height)) {}
LumaWork::~LumaWork() = default;

void LumaWork::add_gpu([[maybe_unused]] const Session& session) {
#ifdef FRAMELANE_WITH_CUDA
  gpu_ = std::make_unique<Gpu>(context_of(session), *cpu_);
#endif
}

std::vector<Contender> LumaWork::contenders() {
  std::vector<Contender> result{cpu_->contender(kCpu, false), cpu_->contender(kCpuCounting, true)};
#ifdef FRAMELANE_WITH_CUDA
  if (gpu_ != nullptr) std::ranges::move(gpu_->contenders(), std::back_inserter(result));
#endif
  return result;
}

void judge_luma(Result& result) {
  const auto compare = [&result](const char* plain, const char* counting, const char* words) {
    const Row* without = result.measured(plain);
    const Row* with = result.measured(counting);
    if (without == nullptr || with == nullptr) return;
    result.verdict.push_back(fmt::format("{} of {}: {:+.1f} % of the conversion's time", words,
                                         to_string(parameter(with->parameters, kSize)),
                                         100 * (with->median() / without->median() - 1)));
  };
  compare(kCpu, kCpuCounting, "mean, minimum, maximum and histogram of the luma, on one core,");
  compare(kGpu, kGpuCounting, "the same on the GPU, in the kernel that converts,");
  compare(kGpu, kGpuAfterwards, "the same on the GPU, in a kernel of its own afterwards,");
}

}  // namespace framelane::bench
