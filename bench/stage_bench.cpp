// The whole stage, host to host, as the daemon runs it: jobs through a FrameRing, the ledger, the
// timing of every frame. Beside it, in the same run, what the bus can carry (uploads alone, and
// with as many downloads beside them) and the usual ways to do the same. For a GPU; every figure is
// the median of the rounds.
//
//   framelane_stage_bench [--seconds S] [--rounds N] [--gpu N] [--variants]
//
//   --variants   also with other numbers of slices and lanes than the defaults
//
// Fails when the stage seems to be faster than uploads alone: then the ceiling is measured wrongly.
//
// For a GPU machine that has little else, build it elsewhere, with -DCMAKE_BUILD_TYPE=Release and
// -DCMAKE_CUDA_ARCHITECTURES=90 (say), and put libhwy.so.1, libspdlog.so.1.10 and libfmt.so.9
// beside it, where it looks first.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/stage_ceilings.hpp"
#include "bench/stage_feed.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "pipeline/cuda/cuda_handles.hpp"
#include "pipeline/cuda/cuda_plan.hpp"
#include "pipeline/cuda/image_copy.hpp"
#include "pipeline/gpu.hpp"

namespace framelane {
namespace {

using namespace bench;

/// What a ratio to a ceiling may be above 1 for noise.
constexpr double kCredible = 1.05;

/// Frames and device memory for the usual ways, which are not ours, and what the bus can carry.
class Baseline {
 public:
  explicit Baseline(const Conversion& convert)
      : convert_(convert),
        converter_(CudaConverter::make(convert)),
        frames_(make_frames(pool_, convert.source, {"", convert.width, convert.height}, 8)),
        target_(allocate_image(pool_, convert.target, convert.width, convert.height)),
        images_(context_, {&convert_, 1}, FrameMemory::kHost),
        ceilings_(context_, convert, frames_) {
    context_.memory_stream().synchronize();
    for (int i = 0; i < 8; ++i) streams_.push_back(std::make_unique<CudaStream>());
    // The same pixels in memory that CUDA does not know.
    std::size_t bytes = frames_[0].buffer.get()->size;
    pageable_source_.resize(bytes);
    std::memcpy(pageable_source_.data(), frames_[0].buffer.get()->data, bytes);
    pageable_target_.resize(target_.buffer.get()->size);
  }

  const StageCeilings& ceilings() const { return ceilings_; }
  /// Copy, convert, copy back, one after the other, with memory as it comes from malloc.
  double pageable_default_stream(double seconds) {
    return rate(seconds,
                [this](int) { blocking_copies(pageable_source_.data(), pageable_target_.data()); });
  }
  double pinned_default_stream(double seconds) {
    return rate(seconds, [this](int i) {
      const PooledImage& source = frames_[static_cast<std::size_t>(i) % frames_.size()];
      blocking_copies(source.buffer.get()->data, target_.buffer.get()->data);
    });
  }
  /// What the textbooks show: one frame cut in eight, each part on a stream of its own.
  double eight_streams(double seconds) {
    return rate(seconds, [this](int i) {
      constexpr int kParts = 8;
      int begin = 0;
      for (int part = 0; part < kParts; ++part) {
        const int end =
            part == kParts - 1 ? convert_.height : convert_.height * (part + 1) / kParts / 16 * 16;
        const CudaStream& stream = *streams_[static_cast<std::size_t>(part)];
        copy_rows(as_const(frame(i)), images_.source->image, begin, end, cudaMemcpyHostToDevice,
                  stream);
        enqueue(begin, end, stream);
        copy_rows(as_const(images_.targets[0]->image), target_.image, begin, end,
                  cudaMemcpyDeviceToHost, stream);
        begin = end;
      }
      for (const auto& stream : streams_) stream->synchronize();
    });
  }

 private:
  double rate(double seconds, const std::function<void(int)>& each) {
    for (int i = 0; i < 4; ++i) each(i);
    for (const auto& stream : streams_) stream->synchronize();
    const Clock::time_point start = Clock::now();
    int count = 0;
    for (; seconds_since(start) < seconds; ++count) each(count);
    for (const auto& stream : streams_) stream->synchronize();
    return count / seconds_since(start);
  }
  const ImageView& frame(int i) const {
    return frames_[static_cast<std::size_t>(i) % frames_.size()].image;
  }
  void enqueue(int begin, int end, const CudaStream& stream) const {
    cuda::check(converter_->enqueue(as_const(images_.source->image), images_.targets[0]->image,
                                    begin, end, stream.get()),
                "cudaLaunchKernel");
  }
  void blocking_copies(const std::uint8_t* source, std::uint8_t* target) const {
    cuda::check(cudaMemcpy(images_.source->memory.data(), source,
                           image_bytes(convert_.source, size()), cudaMemcpyHostToDevice),
                "cudaMemcpy");
    cuda::check(converter_->enqueue(as_const(images_.source->image), images_.targets[0]->image, 0,
                                    convert_.height, nullptr),
                "cudaLaunchKernel");
    cuda::check(cudaMemcpy(target, images_.targets[0]->memory.data(),
                           image_bytes(convert_.target, size()), cudaMemcpyDeviceToHost),
                "cudaMemcpy");
  }
  Size size() const { return {"", convert_.width, convert_.height}; }

  const Conversion convert_;
  const std::unique_ptr<const CudaConverter> converter_;
  FramePool pool_;
  const std::vector<PooledImage> frames_;
  const PooledImage target_;
  CudaContext context_{current_gpu()};
  const LaneImages images_;
  const StageCeilings ceilings_;
  std::vector<std::unique_ptr<CudaStream>> streams_;
  std::vector<std::uint8_t> pageable_source_;
  std::vector<std::uint8_t> pageable_target_;

  static int current_gpu() {
    int device = 0;
    cuda::check(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
};

struct Options {
  double seconds = 0.4;
  int rounds = 7;
  int gpu = 0;
  bool variants = false;
};

/// The highest ratio to uploads alone.
double throughput(Device& device, const char* title, const Conversion& convert, int feed_count,
                  const Options& options, bool with_others) {
  Baseline baseline(convert);
  std::vector<std::unique_ptr<BenchFeed>> feeds;
  for (int i = 0; i < feed_count; ++i) {
    feeds.push_back(std::make_unique<BenchFeed>(device, convert, std::nullopt));
  }
  run_feeds(feeds, 0.2);  // pools grow
  struct Variant {
    int slices;
    int lanes;
    std::vector<std::unique_ptr<BenchFeed>> feeds;
    std::vector<double> ratios;
  };
  std::vector<Variant> variants;
  for (const int lanes : {3, 6}) {
    for (const int slices : {1, 2, 4}) {
      if (!options.variants || (feed_count > 1 && slices > 1)) continue;
      Variant& variant = variants.emplace_back(Variant{slices, lanes, {}, {}});
      for (int i = 0; i < feed_count; ++i) {
        variant.feeds.push_back(std::make_unique<BenchFeed>(device, convert, slices, lanes));
      }
      run_feeds(variant.feeds, 0.2);
    }
  }
  std::vector<double> uploads, duplexes, stages, ratios, cpu, own, pageable, pinned, eight;
  for (int round = 0; round < options.rounds; ++round) {
    uploads.push_back(baseline.ceilings().upload(options.seconds));
    duplexes.push_back(baseline.ceilings().duplex(options.seconds));
    const StageFigures figures = run_feeds(feeds, options.seconds);
    stages.push_back(figures.frames_per_second);
    cpu.push_back(figures.cpu_per_1000_frames);
    own.push_back(figures.own_per_1000_frames);
    ratios.push_back(stages.back() / uploads.back());
    for (Variant& variant : variants) {
      variant.ratios.push_back(run_feeds(variant.feeds, options.seconds).frames_per_second /
                               uploads.back());
    }
    if (!with_others) continue;
    pageable.push_back(stages.back() / baseline.pageable_default_stream(options.seconds));
    pinned.push_back(stages.back() / baseline.pinned_default_stream(options.seconds));
    eight.push_back(stages.back() / baseline.eight_streams(options.seconds));
  }
  const double bytes =
      static_cast<double>(image_bytes(convert.source, {"", convert.width, convert.height}));
  std::printf("%s, %d feed%s\n", title, feed_count, feed_count == 1 ? "" : "s");
  std::printf("  uploads alone           %8.2f GB/s\n", median(uploads) * bytes * 1e-9);
  std::printf("  beside downloads        %8.2f GB/s  %9.0f frames/s  %.3f of uploads alone\n",
              median(duplexes) * bytes * 1e-9, median(duplexes),
              median(duplexes) / median(uploads));
  std::printf("  stage                   %8.2f GB/s  %9.0f frames/s  %.3f of uploads alone\n",
              median(stages) * bytes * 1e-9, median(stages), median(ratios));
  std::printf("  CPU                     %8.4f s per 1000 frames, %.4f with the driver's threads\n",
              median(own), median(cpu));
  double highest = median(ratios);
  for (const Variant& variant : variants) {
    std::printf("  %d lanes, %d slice%s        %.3f of uploads alone\n", variant.lanes,
                variant.slices, variant.slices == 1 ? " " : "s", median(variant.ratios));
    highest = std::max(highest, median(variant.ratios));
  }
  if (!with_others) return highest;
  std::printf("  faster than pageable memory on the default stream    %.2f times\n",
              median(pageable));
  std::printf("  faster than pinned memory on the default stream      %.2f times\n",
              median(pinned));
  std::printf("  faster than eight streams that slice one frame       %.2f times\n", median(eight));
  return highest;
}

void latency(Device& device, const Conversion& convert, const char* title) {
  constexpr int kFrames = 50;
  Baseline baseline(convert);
  const double upload = 1 / baseline.ceilings().upload(0.5);
  const double download = 1 / baseline.ceilings().download(0.5);
  const double kernel = 1 / baseline.ceilings().kernel(0.5);
  const double bound = std::max(upload, download) + kernel;
  std::printf("%s, one frame alone: upload %.3f ms, kernel %.3f ms, download %.3f ms\n", title,
              upload * 1e3, kernel * 1e3, download * 1e3);
  for (const std::optional<int> slices : {std::optional(1), std::optional(4), std::optional(8),
                                          std::optional(16), std::optional<int>()}) {
    BenchFeed feed(device, convert, slices);
    for (int i = 0; i < 5; ++i) feed.latency();
    std::vector<double> times;
    for (int i = 0; i < kFrames; ++i) times.push_back(feed.latency());
    std::printf("  slices %-4s  %.3f ms, %.3f of max(upload, download) + kernel\n",
                slices ? std::to_string(*slices).c_str() : "auto", median(times) * 1e3,
                median(times) / bound);
  }
}

int run(const Options& options) {
  const GpuResult gpu = open_gpu(options.gpu, make_cpu_device());
  if (gpu.device == nullptr) {
    std::fprintf(stderr, "framelane_stage_bench: %s\n", gpu.why.c_str());
    return 1;
  }
  cuda::check(cudaSetDevice(options.gpu), "cudaSetDevice");
  std::printf("%s, CUDA %s, driver for %s, %d rounds of %.1f s, %d lanes, ring %d\n",
              gpu.device->model().c_str(), cuda_build_version().c_str(),
              cuda_driver_version().c_str(), options.rounds, options.seconds, kLanes, kRing);
  Device& device = *gpu.device;
  const Conversion big = conversion(PixelFormat::kBgra, PixelFormat::kNv12, k8K);
  const Conversion small = conversion(PixelFormat::kBgra, PixelFormat::kNv12, k1080p);
  const auto other_range = [](const Size& size) {
    return conversion(PixelFormat::kI420, PixelFormat::kNv12, size);
  };
  const auto other_matrix = [&](const Size& size) {
    Conversion result = other_range(size);
    result.source_color = {Matrix::kBt601, Range::kLimited};
    return result;
  };
  const double highest =
      std::max({throughput(device, "8K BGRA to NV12", big, 1, options, true),
                throughput(device, "1080p BGRA to NV12", small, 1, options, true),
                throughput(device, "1080p BGRA to NV12", small, 16, options, false),
                throughput(device, "8K I420 to NV12, full to limited range", other_range(k8K), 1,
                           options, false),
                throughput(device, "1080p I420 to NV12, full to limited range", other_range(k1080p),
                           1, options, false),
                throughput(device, "8K I420 to NV12, BT.601 to BT.709", other_matrix(k8K), 1,
                           options, false),
                throughput(device, "1080p I420 to NV12, BT.601 to BT.709", other_matrix(k1080p), 1,
                           options, false)});
  latency(device, big, "8K BGRA to NV12");
  latency(device, small, "1080p BGRA to NV12");
  const EngineMeters& busy = device.busy();
  std::printf("engines, in all: h2d %.2f s, kernel %.2f s, d2h %.2f s, any %.2f s\n",
              std::chrono::duration<double>(busy[Engine::kH2d].total()).count(),
              std::chrono::duration<double>(busy[Engine::kKernel].total()).count(),
              std::chrono::duration<double>(busy[Engine::kD2h].total()).count(),
              std::chrono::duration<double>(busy.any().total()).count());
  if (highest > kCredible) {
    std::fprintf(stderr,
                 "framelane_stage_bench: the stage cannot carry %.3f of what uploads alone do: "
                 "their rate is measured wrongly\n",
                 highest);
  }
  return device.lost() || highest > kCredible ? 1 : 0;
}

}  // namespace
}  // namespace framelane

int main(int argc, char** argv) {
  framelane::Options options;
  for (int i = 1; i < argc; ++i) {
    const auto value = [&](const char* name) {
      const bool found = i + 1 < argc && std::strcmp(argv[i], name) == 0;
      return found ? argv[++i] : nullptr;
    };
    if (const char* seconds = value("--seconds")) {
      options.seconds = std::atof(seconds);
    } else if (const char* rounds = value("--rounds")) {
      options.rounds = std::atoi(rounds);
    } else if (const char* gpu = value("--gpu")) {
      options.gpu = std::atoi(gpu);
    } else if (std::strcmp(argv[i], "--variants") == 0) {
      options.variants = true;
    } else {
      std::fprintf(stderr, "framelane_stage_bench: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  try {
    return framelane::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framelane_stage_bench: %s\n", error.what());
    return 1;
  }
}
