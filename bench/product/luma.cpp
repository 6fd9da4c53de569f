#include "bench/product/luma.hpp"

#include <fmt/core.h>

#include <iterator>

#include "kernels/converter.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/harness/gpu_frames.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/cuda/luma_count.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr const char* kUnit = "ms per 1000";
constexpr const char* kSize = "size";
constexpr const char* kPicture = "picture";
constexpr const char* kCpu = "CPU, BGRA to NV12";
constexpr const char* kCpuCounting = "CPU, BGRA to NV12 and luma";
constexpr const char* kGpu = "GPU, BGRA to NV12";
constexpr const char* kGpuCounting = "GPU, BGRA to NV12 and luma in one kernel";
constexpr const char* kGpuAfterwards = "GPU, BGRA to NV12, then luma";

const char* name_of(LumaPicture picture) {
  switch (picture) {
    case LumaPicture::kNoise:
      return "noise";
    case LumaPicture::kBlack:
      return "black";
    case LumaPicture::kGradient:
      break;
  }
  return "gradient";
}

/// Changes a picture of noise into the wanted one.
void paint(LumaPicture picture, const ImageView& bgra) {
  if (picture == LumaPicture::kNoise) return;
  for (int y = 0; y < bgra.height; ++y) {
    std::uint8_t* const row = bgra.row(0, y);
    for (int i = 0; i < 4 * bgra.width; ++i) {
      // Neighbours differ by little, with a sensor's noise on top.
      const int gradient = 16 + 140 * (i / 4) / bgra.width + 90 * y / bgra.height + (row[i] & 3);
      row[i] = picture == LumaPicture::kBlack ? 0 : static_cast<std::uint8_t>(gradient);
    }
  }
}

std::vector<Parameter> parameters_of(const Conversion& convert, LumaPicture picture) {
  return {{kSize, fmt::format("{}x{}", convert.width, convert.height)},
          {kPicture, name_of(picture)}};
}

}  // namespace

struct LumaWork::Cpu {
  Cpu(const Session& session, const Size& size, LumaPicture of)
      : convert(conversion(PixelFormat::kBgra, PixelFormat::kNv12, size)),
        picture(of),
        source(make_source(session)),
        target(allocate_image(targets, convert.target, size.width, size.height)),
        converter(Converter::make(convert)),
        expected(reference_result(convert, as_const(source.image))),
        expected_luma(luma_of(as_const(expected.image))) {}

  PooledImage make_source(const Session& session) {
    const Size size{"", convert.width, convert.height};
    require_memory(session,
                   image_bytes(convert.source, size) + 2 * image_bytes(convert.target, size),
                   "--size");
    PooledImage frame = make_frames(sources, convert.source, size, 1).front();
    paint(picture, frame.image);
    return frame;
  }

  Row make_row(const char* name) const {
    return {.name = name,
            .parameters = parameters_of(convert, picture),
            .bytes = 1000 * static_cast<double>(moved_bytes(convert)),
            .unit = kUnit};
  }

  Contender contender(const char* name, bool counts) {
    return {make_row(name),
            [this] {
              spoil(target.image);
              luma = {};
            },
            [this, counts] {
              return 1000 * milliseconds([this, counts] {
                       const ConstImageView from = as_const(source.image);
                       if (!counts) return converter->run(from, target.image, 0, convert.height);
                       luma = {};
                       convert_and_count(*converter, from, target.image, {0, convert.height}, luma);
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
  const LumaPicture picture;
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
    return {cpu.make_row(name), [this] { spoil_results(); },
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
    // The counters hold the sum of all frames, modulo 2^32.
    for (std::uint32_t& count : expected.counts) count *= converted;
    return got == expected ? "" : "its luma is counted wrongly";
  }

  const Cpu& cpu;
  const std::unique_ptr<const CudaConverter> converter;
  const DeviceMemory counts_memory;
  std::uint32_t converted = 0;
  const GpuFrames frames;  // last: its destructor waits for the GPU
};

#else

struct LumaWork::Gpu {};

#endif

LumaWork::LumaWork(const Session& session, const Size& size, LumaPicture picture)
    : cpu_(std::make_unique<Cpu>(session, size, picture)) {}
LumaWork::~LumaWork() = default;

void LumaWork::add_gpu([[maybe_unused]] const Session& session) {
#ifdef FRAMELANE_WITH_CUDA
  gpu_ = std::make_unique<Gpu>(context_of(session), *cpu_);
#endif
}

std::vector<Contender> LumaWork::cpu_contenders() {
  return {cpu_->contender(kCpu, false), cpu_->contender(kCpuCounting, true)};
}

std::vector<Contender> LumaWork::gpu_contenders() {
#ifdef FRAMELANE_WITH_CUDA
  if (gpu_ != nullptr) return gpu_->contenders();
#endif
  return {};
}

void measure_luma(const Session& session, double turn, const std::vector<Size>& sizes,
                  Result& result) {
  bool first = true;
  for (const Size& size : sizes) {
    for (const LumaPicture picture : kLumaPictures) {
      if (!first && (session.gpu == nullptr || session.stopped())) return;
      std::unique_ptr<LumaWork> work;
      try {
        work = std::make_unique<LumaWork>(session, size, picture);
      } catch (const std::exception& error) {
        result.problems.push_back(fmt::format("counting luma: {}", error.what()));
        return;
      }
      bool gpu_failed = false;
#ifdef FRAMELANE_WITH_CUDA
      if (session.gpu != nullptr) {
        try {
          work->add_gpu(session);
        } catch (const std::exception& error) {
          result.problems.push_back("counting luma: " + problem_of_gpu(session, "--size", error));
          gpu_failed = true;
        }
      }
#endif
      std::vector<Contender> contenders = work->gpu_contenders();
      if (first) {
        std::vector<Contender> on_cpu = work->cpu_contenders();
        contenders.insert(contenders.begin(), std::move_iterator(on_cpu.begin()),
                          std::move_iterator(on_cpu.end()));
      }
      take_turns(session, turn, contenders, result);
      if (gpu_failed) return;
      first = false;
    }
  }
}

std::size_t luma_contenders(const Session& session, const std::vector<Size>& sizes) {
  constexpr std::size_t kOnCpu = 2, kOnGpu = 3;
  return kOnCpu + (session.gpu != nullptr ? kOnGpu * sizes.size() * std::size(kLumaPictures) : 0);
}

void judge_luma(Result& result) {
  const auto compare = [&result](const char* plain, const char* counting, const char* words) {
    for (const Row& with : result.rows) {
      if (!with.counts() || !with.is(counting, {{kPicture, name_of(LumaPicture::kNoise)}}))
        continue;
      const Row* without = result.measured(plain, with.parameters);
      if (without == nullptr) continue;
      result.verdict.push_back(fmt::format("{} of {}: {:+.1f} % of the conversion's time", words,
                                           to_string(parameter(with.parameters, kSize)),
                                           100 * (with.median() / without->median() - 1)));
    }
  };
  compare(kCpu, kCpuCounting, "mean, minimum, maximum and histogram of the luma, on one core,");
  compare(kGpu, kGpuCounting, "the same on the GPU, in the kernel that converts,");
  compare(kGpu, kGpuAfterwards, "the same on the GPU, in a kernel of its own afterwards,");
}

}  // namespace framelane::bench
