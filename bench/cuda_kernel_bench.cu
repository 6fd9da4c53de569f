// The CUDA conversions on a real GPU: first whether they give the reference's
// bytes, for every pair of formats, then how fast they are beside a copy within
// the device and beside NPP in the same run. Buffers go round more memory than
// the second-level cache holds, as in a feed.
//
// --luma measures what it costs to count luma samples in the conversion, for
// pictures that count very differently.
//
//   framelane_cuda_kernel_bench [--check | --time | --luma]
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/npp.hpp"
#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/cuda/luma_count.hpp"
#include "kernels/cuda/rgb_to_yuv.cuh"
#include "kernels/luma_histogram.hpp"
#include "kernels/reference.hpp"

namespace framelane {
namespace {

constexpr std::ptrdiff_t kPitchMultiple = 64;
constexpr ColorSpec kRgb{Matrix::kRgb, Range::kFull};
constexpr ColorSpec k709;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// A frame whose planes follow one another, in memory of either side.
struct Layout {
  ImageView view;  // with null as the memory's address
  std::size_t bytes = 0;
  std::size_t pixel_bytes = 0;
};

Layout layout_of(PixelFormat format, int width, int height) {
  Layout layout{{format, width, height, {}}, 0, 0};
  for (int i = 0; i < info(format).plane_count; ++i) {
    const auto row = static_cast<std::ptrdiff_t>(plane_row_bytes(format, i, width));
    const auto rows = static_cast<std::size_t>(plane_rows(format, i, height));
    const std::ptrdiff_t pitch = (row + kPitchMultiple - 1) / kPitchMultiple * kPitchMultiple;
    auto& plane = layout.view.planes[static_cast<std::size_t>(i)];
    plane.pitch = pitch;
    plane.data = reinterpret_cast<std::uint8_t*>(layout.bytes);
    layout.bytes += (static_cast<std::size_t>(pitch) * rows + 255) / 256 * 256;
    layout.pixel_bytes += static_cast<std::size_t>(row) * rows;
  }
  return layout;
}

ImageView at(const Layout& layout, std::uint8_t* memory) {
  ImageView view = layout.view;
  for (int i = 0; i < info(view.format).plane_count; ++i) {
    auto& plane = view.planes[static_cast<std::size_t>(i)];
    plane.data = memory + reinterpret_cast<std::uintptr_t>(plane.data);
  }
  return view;
}

struct DeviceFree {
  void operator()(std::uint8_t* memory) const { check(cudaFree(memory), "cudaFree"); }
};
using DeviceMemory = std::unique_ptr<std::uint8_t, DeviceFree>;

DeviceMemory allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return DeviceMemory(static_cast<std::uint8_t*>(memory));
}

/// A frame's luma counts in device memory.
class LumaCounts {
 public:
  explicit LumaCounts(cudaStream_t stream) : memory_(allocate(sizeof(LumaHistogram))) {
    clear(stream);
  }
  void clear(cudaStream_t stream) const {
    check(cudaMemsetAsync(memory_.get(), 0, sizeof(LumaHistogram), stream), "memset");
  }
  LumaHistogram download(cudaStream_t stream) const {
    LumaHistogram counts;
    check(cudaMemcpyAsync(&counts, memory_.get(), sizeof counts, cudaMemcpyDeviceToHost, stream),
          "download");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    return counts;
  }
  std::uint32_t* get() const { return reinterpret_cast<std::uint32_t*>(memory_.get()); }

 private:
  DeviceMemory memory_;
};

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    const std::uint64_t value = random();
    std::memcpy(&bytes[i], &value, sizeof value);
  }
  return bytes;
}

class Bench {
 public:
  Bench() {
    cudaDeviceProp device{};
    check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    std::printf(
        "%s, compute capability %d.%d, L2 %d MiB; CUDA %d.%d, driver "
        "for %d.%d\n",
        device.name, device.major, device.minor, device.l2CacheSize >> 20, runtime / 1000,
        runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
    cache_ = static_cast<std::size_t>(device.l2CacheSize);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Bench() {
    check(cudaEventDestroy(begin_), "cudaEventDestroy");
    check(cudaEventDestroy(end_), "cudaEventDestroy");
    check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  }

  /// With `counts_luma`, counts it as well, as the reference's has to be.
  bool gives_the_references_bytes(const Conversion& conversion, bool counts_luma) {
    const Layout from = layout_of(conversion.source, conversion.width, conversion.height);
    const Layout to = layout_of(conversion.target, conversion.width, conversion.height);
    std::vector<std::uint8_t> source = random_bytes(from.bytes);
    std::vector<std::uint8_t> expected(to.bytes, 0xA5), actual(to.bytes);
    const DeviceMemory device_source = allocate(from.bytes), device_target = allocate(to.bytes);
    check(cudaMemcpyAsync(device_source.get(), source.data(), from.bytes, cudaMemcpyHostToDevice,
                          stream_),
          "upload");
    check(cudaMemcpyAsync(device_target.get(), expected.data(), to.bytes, cudaMemcpyHostToDevice,
                          stream_),
          "upload");
    const LumaCounts counts(stream_);
    const CudaFrame frame{as_const(at(from, device_source.get())), at(to, device_target.get()),
                          counts_luma ? counts.get() : nullptr};
    check(CudaConverter::make(conversion)->enqueue({&frame, 1}, 0, conversion.height, stream_),
          "enqueue");
    check(cudaMemcpyAsync(actual.data(), device_target.get(), to.bytes, cudaMemcpyDeviceToHost,
                          stream_),
          "download");
    // The reference is slow; its rows are independent.
    const auto reference = make_reference_converter(conversion);
    const int pieces = std::clamp(conversion.height / 16, 1, 32);
    const int rows = (conversion.height / pieces + 2) / 2 * 2;
    {
      std::vector<std::jthread> threads;
      for (int y = 0; y < conversion.height; y += rows) {
        threads.emplace_back([&, y] {
          reference->run(as_const(at(from, source.data())), at(to, expected.data()), y,
                         std::min(y + rows, conversion.height));
        });
      }
    }
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    LumaHistogram luma;
    if (counts_luma) {
      count_luma(as_const(at(to, expected.data())), 0, conversion.height, luma);
    }
    return actual == expected && counts.download(stream_) == luma;
  }

  /// Microseconds each of `count` calls takes on the device, when they follow
  /// one another.
  double time(int count, const std::function<void(int)>& enqueue) {
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (int i = 0; i < count; ++i) enqueue(i);
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return 1000.0 * static_cast<double>(milliseconds) / count;
  }
  /// The same where one call launches them all, as a CUDA graph.
  double time_graph(int count, const std::function<void(int)>& enqueue) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
    for (int i = 0; i < count; ++i) enqueue(i);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t launchable = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "end capture");
    check(cudaGraphInstantiate(&launchable, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphUpload(launchable, stream_), "cudaGraphUpload");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    const double all = time(1, [&](int) { check(cudaGraphLaunch(launchable, stream_), "launch"); });
    check(cudaGraphExecDestroy(launchable), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return all / count;
  }

  cudaStream_t stream() const { return stream_; }
  std::size_t cache() const { return cache_; }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::size_t cache_ = 0;
};

// --- bytes

std::vector<ColorSpec> colors(PixelFormat format) {
  std::vector<ColorSpec> result;
  for (const Range range : {Range::kLimited, Range::kFull}) {
    if (info(format).rgb) {
      result.push_back({Matrix::kRgb, range});
      continue;
    }
    for (const Matrix matrix : {Matrix::kBt601, Matrix::kBt709, Matrix::kBt2020}) {
      for (const Siting siting : {Siting::kLeft, Siting::kCenter, Siting::kTopLeft}) {
        result.push_back({matrix, range, siting});
      }
    }
  }
  return result;
}

int count_mismatches(Bench& bench) {
  constexpr std::pair<int, int> kSizes[] = {
      {1, 1},    {2, 1},     {1, 2},     {3, 5},      {4, 4},      {7, 2},      {17, 9},
      {64, 64},  {127, 33},  {128, 8},   {129, 31},   {255, 16},   {511, 7},    {512, 512},
      {513, 10}, {641, 479}, {720, 576}, {1279, 719}, {1280, 720}, {1920, 1080}};
  int done = 0, wrong = 0;
  std::size_t turn = 0;
  for (int source = 0; source < kPixelFormatCount; ++source) {
    for (int target = 0; target < kPixelFormatCount; ++target) {
      std::vector<Conversion> choices;
      for (const ColorSpec& from : colors(static_cast<PixelFormat>(source))) {
        for (const ColorSpec& to : colors(static_cast<PixelFormat>(target))) {
          const Conversion conversion{
              8, 8, static_cast<PixelFormat>(source), from, static_cast<PixelFormat>(target), to};
          if (!why_unsupported(conversion) && !is_identity(conversion))
            choices.push_back(conversion);
        }
      }
      if (choices.empty()) continue;
      for (const auto& [width, height] : kSizes) {
        Conversion conversion = choices[turn++ * 7 % choices.size()];
        conversion.width = width;
        conversion.height = height;
        for (const bool counts_luma : {false, true}) {
          ++done;
          if (bench.gives_the_references_bytes(conversion, counts_luma)) continue;
          ++wrong;
          std::printf("WRONG%s: %s %s to %s %s, %dx%d\n", counts_luma ? " with luma counts" : "",
                      info(conversion.source).name.data(),
                      describe(conversion.source_color).c_str(),
                      info(conversion.target).name.data(),
                      describe(conversion.target_color).c_str(), width, height);
        }
      }
    }
  }
  std::printf("%d conversions compared with the reference, %d differ\n", done, wrong);
  return wrong;
}

// --- speed

struct Pair {
  const char* name;
  PixelFormat source;
  ColorSpec source_color;
  PixelFormat target;
  ColorSpec target_color;
};

constexpr ColorSpec sited(Siting siting) { return {Matrix::kBt709, Range::kLimited, siting}; }

constexpr std::array kPairs{
    Pair{"bgra to nv12", PixelFormat::kBgra, kRgb, PixelFormat::kNv12, k709},
    Pair{"bgra to i420", PixelFormat::kBgra, kRgb, PixelFormat::kI420, k709},
    Pair{"bgra to nv12, bt2020 full",
         PixelFormat::kBgra,
         kRgb,
         PixelFormat::kNv12,
         {Matrix::kBt2020, Range::kFull}},
    Pair{"bgra to nv12, centre", PixelFormat::kBgra, kRgb, PixelFormat::kNv12,
         sited(Siting::kCenter)},
    Pair{"bgra to i420, centre", PixelFormat::kBgra, kRgb, PixelFormat::kI420,
         sited(Siting::kCenter)},
    Pair{"bgra to nv12, top left", PixelFormat::kBgra, kRgb, PixelFormat::kNv12,
         sited(Siting::kTopLeft)},
    Pair{"bgra to i420, top left", PixelFormat::kBgra, kRgb, PixelFormat::kI420,
         sited(Siting::kTopLeft)},
    Pair{"argb to nv12", PixelFormat::kArgb, kRgb, PixelFormat::kNv12, k709},
    Pair{"bgr24 to nv12", PixelFormat::kBgr24, kRgb, PixelFormat::kNv12, k709},
    Pair{"bgra to i422", PixelFormat::kBgra, kRgb, PixelFormat::kI422, k709},
    Pair{"bgra to i444", PixelFormat::kBgra, kRgb, PixelFormat::kI444, k709},
    Pair{"bgra to packed 4:4:4", PixelFormat::kBgra, kRgb, PixelFormat::kYuv444, k709},
    Pair{"i420 to nv12", PixelFormat::kI420, k709, PixelFormat::kNv12, k709},
    Pair{"i420 to nv12, full to limited",
         PixelFormat::kI420,
         {Matrix::kBt709, Range::kFull},
         PixelFormat::kNv12,
         k709},
    Pair{"i420 to nv12, bt601 to bt709",
         PixelFormat::kI420,
         {Matrix::kBt601},
         PixelFormat::kNv12,
         k709},
    Pair{"yuyv to nv12", PixelFormat::kYuyv, k709, PixelFormat::kNv12, k709},
};

/// The obvious kernel to 4:4:4, to compare with: a pixel a thread, a byte a load
/// and a store.
struct Plain444 {
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
          static_cast<std::uint8_t>(sample < 255 ? sample : 255);
    }
  }
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// As many frames of a kind as go round more memory than the cache holds,
// several times over.
class Frames {
 public:
  Frames(const Bench& bench, const Conversion& conversion)
      : Frames(
            bench, conversion,
            random_bytes(layout_of(conversion.source, conversion.width, conversion.height).bytes)) {
  }
  /// Every one with these pixels.
  Frames(const Bench& bench, const Conversion& conversion, const std::vector<std::uint8_t>& bytes)
      : from_(layout_of(conversion.source, conversion.width, conversion.height)),
        to_(layout_of(conversion.target, conversion.width, conversion.height)),
        count_(static_cast<int>(4 * bench.cache() / (from_.bytes + to_.bytes)) / 16 * 16 + 16),
        sources_(allocate(from_.bytes * static_cast<std::size_t>(count_))),
        targets_(allocate(to_.bytes * static_cast<std::size_t>(count_))) {
    for (int i = 0; i < count_; ++i) {
      std::uint8_t* to = sources_.get() + static_cast<std::size_t>(i) * from_.bytes;
      check(cudaMemcpyAsync(to, bytes.data(), from_.bytes, cudaMemcpyHostToDevice, bench.stream()),
            "upload");
      frames_.push_back({as_const(at(from_, to)),
                         at(to_, targets_.get() + static_cast<std::size_t>(i) * to_.bytes),
                         nullptr});
    }
    check(cudaStreamSynchronize(bench.stream()), "upload");
  }

  int count() const { return count_; }
  /// The luma of a frame's target as it is now.
  LumaHistogram luma(int i, cudaStream_t stream) const {
    std::vector<std::uint8_t> bytes(to_.bytes);
    check(cudaMemcpyAsync(bytes.data(), frame(i).target.planes[0].data, to_.bytes,
                          cudaMemcpyDeviceToHost, stream),
          "download");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    LumaHistogram luma;
    count_luma(as_const(at(to_, bytes.data())), 0, to_.view.height, luma);
    return luma;
  }
  const CudaFrame& frame(int i) const { return frames_[static_cast<std::size_t>(i % count_)]; }
  std::span<const CudaFrame> batch(int i, int size) const {
    return {&frames_[static_cast<std::size_t>(i * size % count_)], static_cast<std::size_t>(size)};
  }
  /// What a conversion reads and writes: pixels, not what pads rows.
  std::size_t moved() const { return from_.pixel_bytes + to_.pixel_bytes; }

  /// Copies half as many bytes as a conversion moves, between the two ends of
  /// the same memory.
  void copy(int i, cudaStream_t stream) const {
    const std::size_t bytes = moved() / 2 / 256 * 256;
    const auto index = static_cast<std::size_t>(i);
    const std::size_t all = from_.bytes * static_cast<std::size_t>(count_);
    const std::size_t places = std::max<std::size_t>(all / 2 / bytes, 1);
    check(cudaMemcpyAsync(sources_.get() + all / 2 + index % places * bytes,
                          sources_.get() + index % places * bytes, bytes, cudaMemcpyDeviceToDevice,
                          stream),
          "copy");
  }

 private:
  Layout from_, to_;
  int count_;
  DeviceMemory sources_, targets_;
  std::vector<CudaFrame> frames_;
};

struct Contender {
  std::string name;
  int frames_a_call;
  std::function<void(int)> enqueue;
  std::vector<double> times;   // microseconds a frame
  std::vector<double> graphs;  // the same in a CUDA graph, of small frames
};

/// Prints how fast a conversion is, unless `size` is null; returns its share of a copy's rate.
double measure(Bench& bench, const Pair& pair, const char* size, int width, int height,
               const std::optional<bench::Npp>& npp) {
  const Conversion conversion{width,       height,           pair.source, pair.source_color,
                              pair.target, pair.target_color};
  const Frames frames(bench, conversion);
  const auto converter = CudaConverter::make(conversion);
  const cudaStream_t stream = bench.stream();
  std::vector<Contender> contenders;
  contenders.push_back({"device copy", 1, [&](int i) { frames.copy(i, stream); }, {}, {}});
  contenders.push_back({pair.name,
                        1,
                        [&](int i) {
                          const CudaFrame& frame = frames.frame(i);
                          check(converter->enqueue(frame.source, frame.target, 0, height, stream),
                                pair.name);
                        },
                        {},
                        {}});
  if (height <= 1080 && std::string_view(converter->name()) == "rgb-to-yuv") {
    contenders.push_back({std::string(pair.name) + ", 16 frames a launch",
                          16,
                          [&](int i) {
                            check(converter->enqueue(frames.batch(i, 16), 0, height, stream),
                                  pair.name);
                          },
                          {},
                          {}});
  }
  Plain444 plain{};
  const bool packed = pair.target == PixelFormat::kYuv444;
  if (packed || pair.target == PixelFormat::kI444) {
    const auto forms = color_transform(pair.source_color, pair.target_color);
    for (std::size_t i = 0; i < 3; ++i) {
      plain.samples[i] = cuda::make_quotient(forms[i], 1, true);
    }
    plain.step = packed ? 3 : 1;
    plain.width = width;
    contenders.push_back(
        {"  a pixel a thread",
         1,
         [&](int i) {
           const auto& [source, target, counts] = frames.frame(i);
           plain.source = source.planes[0].data;
           plain.source_pitch = source.planes[0].pitch;
           for (std::size_t plane = 0; plane < 3; ++plane) {
             plain.targets[plane] =
                 packed ? target.planes[0].data + plane : target.planes[plane].data;
           }
           plain.target_pitch = target.planes[0].pitch;
           check(cuda::launch<cuda::Residency::kAny>(width, height, 1, stream, plain),
                 "plain kernel");
         },
         {},
         {}});
  }
  if (npp && pair.target == PixelFormat::kI420 && pair.source == PixelFormat::kBgra &&
      pair.target_color.siting == Siting::kCenter) {
    contenders.push_back({"  NPP BGRToYCbCr420 AC4P3R",
                          1,
                          [&](int i) {
                            const auto& [source, target, counts] = frames.frame(i);
                            const int status = npp->enqueue(source, target, stream);
                            if (status != 0) {
                              std::fprintf(stderr, "NPP: status %d\n", status);
                              std::exit(1);
                            }
                          },
                          {},
                          {}});
  }

  // They take turns, so that a clock that changes changes for all.
  constexpr int kRounds = 9;
  for (int round = 0; round < kRounds; ++round) {
    for (Contender& contender : contenders) {
      const int calls =
          std::max(frames.count(), height > 1080 ? 48 : 192) / contender.frames_a_call;
      const double call = bench.time(calls, contender.enqueue);
      if (round == 0) continue;  // it warms up
      contender.times.push_back(call / contender.frames_a_call);
      if (height > 1080) continue;
      contender.graphs.push_back(bench.time_graph(calls, contender.enqueue) /
                                 contender.frames_a_call);
    }
  }
  const double copy = median(contenders[0].times);
  for (const Contender& contender : contenders) {
    const double time = median(contender.times);
    if (size == nullptr) continue;
    std::printf("%-5s %-44s %9.2f %8.0f %7.3f", size, contender.name.c_str(), time,
                static_cast<double>(frames.moved()) / time / 1e3, copy / time);
    if (!contender.graphs.empty()) std::printf(" %9.2f", median(contender.graphs));
    std::printf("\n");
  }
  return copy / median(contenders[1].times);
}

/// The slowest of what differs in numbers alone: every matrix and range.
void measure_slowest(Bench& bench, PixelFormat target, Siting siting, const char* size, int width,
                     int height) {
  double slowest = 1e9;
  for (const Matrix matrix : {Matrix::kBt601, Matrix::kBt709, Matrix::kBt2020}) {
    for (const Range range : {Range::kLimited, Range::kFull}) {
      const Pair pair{"", PixelFormat::kBgra, kRgb, target, {matrix, range, siting}};
      slowest = std::min(slowest, measure(bench, pair, nullptr, width, height, std::nullopt));
    }
  }
  constexpr std::array kSitings{"left", "centre", "top left"};
  std::printf("%-5s bgra to %s, %s, slowest matrix and range: %.3f of the copy\n", size,
              info(target).name.data(), kSitings[static_cast<std::size_t>(siting)], slowest);
}

void measure_all(Bench& bench) {
  const std::optional<bench::Npp> npp = bench::Npp::find();
  if (!npp) std::printf("NPP is not installed here: no comparison with it\n");
  std::printf("%-5s %-44s %9s %8s %7s %9s\n", "", "", "us/frame", "GB/s", "/copy", "in graph");
  constexpr std::tuple k8K{"8K", 7680, 4320}, k4K{"4K", 3840, 2160}, k1080p{"1080p", 1920, 1080};
  for (const auto& [size, width, height] : {k8K, k4K, k1080p}) {
    for (const Pair& pair : kPairs) measure(bench, pair, size, width, height, npp);
  }
  for (const auto& [size, width, height] : {k8K, k4K}) {
    for (const PixelFormat target : {PixelFormat::kNv12, PixelFormat::kI420}) {
      for (const Siting siting : {Siting::kLeft, Siting::kCenter, Siting::kTopLeft}) {
        measure_slowest(bench, target, siting, size, width, height);
      }
    }
  }
}

// --- luma counts

constexpr Conversion bgra_to_nv12(int width, int height) {
  return {width, height, PixelFormat::kBgra, kRgb, PixelFormat::kNv12, k709};
}

struct Picture {
  const char* name;
  std::uint8_t (*sample)(int x, int y, int width, int height, std::uint32_t noise);
};

constexpr std::array kPictures{
    Picture{"noise", [](int, int, int, int,
                        std::uint32_t noise) { return static_cast<std::uint8_t>(noise); }},
    Picture{"black",
            [](int, int, int, int, std::uint32_t) { return static_cast<std::uint8_t>(0); }},
    // As a camera's: neighbours differ by little, with a sensor's noise on top.
    Picture{"gradient", [](int x, int y, int width, int height, std::uint32_t noise) {
              return static_cast<std::uint8_t>(16 + 140 * x / width + 90 * y / height +
                                               static_cast<int>(noise & 3));
            }}};

std::vector<std::uint8_t> paint(const Picture& picture, int width, int height) {
  const Layout layout = layout_of(PixelFormat::kBgra, width, height);
  std::vector<std::uint8_t> bytes = random_bytes(layout.bytes);
  const ImageView view = at(layout, bytes.data());
  for (int y = 0; y < height; ++y) {
    std::uint8_t* const row = view.row(0, y);
    for (int x = 0; x < width; ++x) {
      for (int i = 0; i < 4; ++i) {
        row[4 * x + i] = picture.sample(x, y, width, height, row[4 * x + i]);
      }
    }
  }
  return bytes;
}

/// Prints what counting costs for one picture and size; false when counts are wrong.
bool measure_luma(Bench& bench, const Picture& picture, const char* size, int width, int height) {
  const Conversion conversion = bgra_to_nv12(width, height);
  const Frames frames(bench, conversion, paint(picture, width, height));
  const auto converter = CudaConverter::make(conversion);
  const cudaStream_t stream = bench.stream();
  const LumaCounts counts(stream);
  const auto convert = [&](int i, std::uint32_t* to) {
    CudaFrame frame = frames.frame(i);
    frame.luma_counts = to;
    check(converter->enqueue({&frame, 1}, 0, height, stream), "enqueue");
  };
  std::vector<Contender> contenders;
  const auto add = [&](const char* name, std::function<void(int)> enqueue) {
    contenders.push_back({name, 1, std::move(enqueue), {}, {}});
  };
  add("not counted", [&](int i) { convert(i, nullptr); });
  add("counted", [&](int i) { convert(i, counts.get()); });
  add("  counted afterwards", [&](int i) {
    convert(i, nullptr);
    check(enqueue_luma_count(as_const(frames.frame(i).target), 0, height, counts.get(), stream),
          "count");
  });

  bool right = true;
  for (std::size_t i = 1; i < contenders.size(); ++i) {
    counts.clear(stream);
    contenders[i].enqueue(0);
    if (counts.download(stream) == frames.luma(0, stream)) continue;
    right = false;
    std::printf("WRONG counts: %s, %s, %s\n", size, picture.name, contenders[i].name.c_str());
  }
  constexpr int kRounds = 25;
  for (int round = 0; round < kRounds; ++round) {
    for (Contender& contender : contenders) {
      const int calls = std::max(frames.count(), height > 1080 ? 48 : 192);
      const double time = bench.time(calls, contender.enqueue);
      if (round > 0) contender.times.push_back(time);  // the first warms up
    }
  }
  const double plain = median(contenders[0].times);
  for (const Contender& contender : contenders) {
    const double time = median(contender.times);
    std::printf("%-5s %-9s %-40s %9.2f %8.0f %+7.1f %%\n", size, picture.name,
                contender.name.c_str(), time, static_cast<double>(frames.moved()) / time / 1e3,
                100 * (time / plain - 1));
  }
  return right;
}

bool measure_luma(Bench& bench) {
  std::printf("%-15s %-40s %9s %8s %9s\n", "", "bgra to nv12", "us/frame", "GB/s", "cost");
  constexpr std::tuple k8K{"8K", 7680, 4320}, k4K{"4K", 3840, 2160}, k1080p{"1080p", 1920, 1080};
  bool right = true;
  for (const auto& [size, width, height] : {k8K, k4K, k1080p}) {
    for (const Picture& picture : kPictures) {
      right &= measure_luma(bench, picture, size, width, height);
    }
  }
  return right;
}

}  // namespace
}  // namespace framelane

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (argc > 2 || (mode != "" && mode != "--check" && mode != "--time" && mode != "--luma")) {
    std::fprintf(stderr, "usage: %s [--check | --time | --luma]\n", argv[0]);
    return 2;
  }
  framelane::Bench bench;
  if (mode == "--luma") return framelane::measure_luma(bench) ? 0 : 1;
  const int wrong = mode == "--time" ? 0 : framelane::count_mismatches(bench);
  if (mode != "--check") framelane::measure_all(bench);
  return wrong == 0 ? 0 : 1;
}
