#include "bench/suites/luma.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "bench/stage_feed.hpp"
#include "bench/suites/pictures.hpp"
#include "kernels/converter.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/suites/gpu_frames.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/cuda/luma_count.hpp"
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

Row make_row(const char* name, const Conversion& convert) {
  const Size size{"", convert.width, convert.height};
  return {.name = name,
          .parameters = {{kSize, fmt::format("{}x{}", convert.width, convert.height)}},
          .bytes = 1000 * static_cast<double>(image_bytes(convert.source, size) +
                                              image_bytes(convert.target, size)),
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

struct LumaWork::Gpu {
  Gpu(CudaContext& context, const Cpu& cpu_part)
      : cpu(cpu_part),
        converter(CudaConverter::make(cpu.convert)),
        counts_memory(context.allocate(sizeof(LumaHistogram))),
        frames(context, cpu.convert, as_const(cpu.source.image)) {}

  std::uint32_t* counts() const { return reinterpret_cast<std::uint32_t*>(counts_memory.data()); }

  void enqueue(std::size_t i, std::uint32_t* to_counts) const {
    const CudaFrame frame{as_const(frames.source(i).image), frames.target(i).image, to_counts};
    cuda::check(converter->enqueue({&frame, 1}, 0, cpu.convert.height, frames.stream().get()),
                "cudaLaunchKernel");
  }

  std::vector<Contender> contenders() {
    return {contender(kGpu, false, [this](std::size_t i) { enqueue(i, nullptr); }),
            contender(kGpuCounting, true, [this](std::size_t i) { enqueue(i, counts()); }),
            contender(kGpuAfterwards, true, [this](std::size_t i) {
              enqueue(i, nullptr);
              cuda::check(enqueue_luma_count(as_const(frames.target(i).image), 0,
                                             cpu.convert.height, counts(), frames.stream().get()),
                          "cudaLaunchKernel");
            })};
  }

  Contender contender(const char* name, bool counting, std::function<void(std::size_t)> work) {
    return {make_row(name, cpu.convert), [this] { spoil_results(); },
            [this, work = std::move(work)] {
              converted += static_cast<std::uint32_t>(frames.timed());
              return 1000 * frames.time(work);
            },
            [this, counting] { return check(counting); }};
  }

  void spoil_results() {
    cuda::check(cudaMemsetAsync(counts(), 0, sizeof(LumaHistogram), frames.stream().get()),
                "cudaMemsetAsync");
    frames.spoil_targets();
    converted = 0;
  }
  std::string check(bool counting) {
    std::string wrong = frames.compare(as_const(cpu.expected.image), cpu.target.image);
    if (!wrong.empty() || !counting) return wrong;
    LumaHistogram got, expected = cpu.expected_luma;
    copy(&got, counts(), sizeof got, cudaMemcpyDeviceToHost, frames.stream().get());
    frames.stream().synchronize();
    // Of all frames together, modulo 2^32.
    for (std::uint32_t& count : expected.counts) count *= converted;
    return got == expected ? "" : "its luma is counted wrongly";
  }

  const Cpu& cpu;
  const std::unique_ptr<const CudaConverter> converter;
  const DeviceMemory counts_memory;
  std::uint32_t converted = 0;
  const GpuFrames frames;  // whose stream is the first to go
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
