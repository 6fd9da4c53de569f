// The sum of a picture of floats, a thousand times, in many ways: from one thread of a GPU to a
// CUDA graph. Then the daemon's own use of the same idea: the luma of a frame is counted while the
// frame is converted.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "bench/harness/simd_loops.hpp"
#include "bench/harness/suite.hpp"
#include "bench/product/luma.hpp"
#include "pipeline/frames/host_buffer.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/experiments/sum_kernels.hpp"
#include "bench/harness/cuda_graph.hpp"
#include "bench/harness/gpu_part.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr int kTimes = 1000;
constexpr const char* kUnit = "ms per 1000";
constexpr const char* kOneByOne = "CPU, one after the other";
constexpr const char* kSideBySide = "CPU, 64 sums side by side";
constexpr const char* kSimd = "CPU, SIMD";
constexpr const char* kReading = "CPU, reading alone";
constexpr const char* kEmpty = "GPU, empty kernels";
constexpr const char* kEmptyGraph = "GPU, one graph of empty kernels";
constexpr const char* kAtOnce = "GPU, all sums in one launch";
constexpr const char* kGraph = "GPU, one CUDA graph";
constexpr const char* kCub = "GPU, CUB";

/// Numbers whose sum is exact in any order of addition, and a place for each of the kTimes sums.
class Picture {
 public:
  Picture(int width, int height)
      : count(static_cast<std::size_t>(width) * static_cast<std::size_t>(height)),
        values_(count * sizeof(float)),
        sums_(kTimes * sizeof(float)) {
    // Whole numbers, not all 0, whose sum is at most 2^24, the largest up to which floats are
    // exact.
    constexpr std::size_t kExact = 1 << 24;
    if (count > kExact)
      throw std::runtime_error(
          "no exact sums of so many pixels: use a --size of 4096x4096 or less");
    const std::size_t steps = std::min<std::size_t>(kExact / count + 1, 64);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<unsigned>(i * 2654435761U) >> 16;
      values()[i] = static_cast<float>(value % steps);
      sum_ += values()[i];
    }
  }

  const std::size_t count;
  float* values() const { return reinterpret_cast<float*>(values_.data()); }
  float* sums() const { return reinterpret_cast<float*>(sums_.data()); }
  float sum() const { return sum_; }
  double bytes() const { return static_cast<double>(count * sizeof(float)); }
  void spoil() const { std::fill_n(sums(), kTimes, -1.0F); }
  std::string compare(int times) const {
    const float* wrong =
        std::find_if(sums(), sums() + times, [this](float s) { return s != sum_; });
    if (wrong == sums() + times) return {};
    return fmt::format("sum {} is {} instead of {}", wrong - sums(), *wrong, sum_);
  }

 private:
  HostBuffer values_, sums_;
  float sum_ = 0;
};

/// `add` makes the first `times` of the sums: slow ways make fewer than kTimes.
Contender contender(const Picture& picture, std::string name, int times,
                    std::function<void()> add) {
  Row row{.name = std::move(name), .bytes = picture.bytes() * kTimes, .unit = kUnit};
  if (times != kTimes) row.note = fmt::format("{} of 1000 were made", times);
  return {std::move(row), [&picture] { picture.spoil(); },
          [times, add = std::move(add)] { return milliseconds(add) * kTimes / times; },
          [&picture, times] { return picture.compare(times); }};
}

float plain_sum(const float* values, std::size_t count) {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

/// Many sums side by side, so that no addition waits for another; the compiler may use SIMD.
float wide_sum(const float* values, std::size_t count) {
  constexpr std::size_t kWide = 64;
  float sums[kWide] = {};
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    for (std::size_t lane = 0; lane < kWide; ++lane) sums[lane] += values[i + lane];
  }
  return plain_sum(sums, kWide) + plain_sum(values + i, count - i);
}

/// Reads the picture as often as the others do, but adds nothing up. The sum is filled in if an
/// exclusive-or shows that every word was read.
Contender reading_alone(const Picture& picture) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(picture.values());
  std::uint32_t expected = 0;
  for (std::size_t i = 0; i < picture.count; ++i) expected ^= words[i];
  return contender(picture, kReading, kTimes, [=, &picture] {
    for (int i = 0; i < kTimes; ++i) {
      const bool whole = read_words(words, picture.count) == expected;
      picture.sums()[i] = whole ? picture.sum() : 0;
    }
  });
}

std::vector<Contender> cpu_contenders(const Picture& picture) {
  const auto with = [&picture](const char* name, float (*sum)(const float*, std::size_t)) {
    return contender(picture, name, kTimes, [&picture, sum] {
      for (int i = 0; i < kTimes; ++i) picture.sums()[i] = sum(picture.values(), picture.count);
    });
  };
  return {with(kOneByOne, plain_sum), with(kSideBySide, wide_sum), with(kSimd, sum_floats)};
}

#ifdef FRAMELANE_WITH_CUDA

/// The picture is on the GPU already; only the sums come back.
class ReduceGpu {
 public:
  ReduceGpu(CudaContext& context, const Picture& picture)
      : picture_(picture),
        values_(context.allocate(picture.count * sizeof(float))),
        sums_(context.allocate(kTimes * sizeof(float))) {
    context.memory_stream().synchronize();
    copy(values_.data(), picture.values(), picture.count * sizeof(float), cudaMemcpyHostToDevice,
         stream());
    streams_.synchronize(1);
  }

  /// Two limits: launching kernels that read nothing, and reading everything with one launch.
  std::vector<Contender> ceilings() {
    std::vector<Contender> all{empty(kEmpty, [this] {
      for (int i = 0; i < kTimes; ++i) {
        cuda::check(enqueue_nothing(picture_.count, stream()), "cudaLaunchKernel");
      }
    })};
    if (make_graph != nullptr) {
      all.push_back(empty(kEmptyGraph, make_graph(kTimes, stream(), [this](int) {
                            return enqueue_nothing(picture_.count, stream());
                          })));
    }
    all.push_back(on_gpu(kAtOnce, kTimes, [this] {
      cuda::check(enqueue_sums(values(), picture_.count, sums(), kTimes, stream()),
                  "cudaLaunchKernel");
    }));
    return all;
  }

  std::vector<Contender> contenders(Result& result) {
    constexpr int kSlow = 10;
    std::vector<Contender> all;
    for (const SumWay way : kSumWays) {
      const int times = way == SumWay::kOneThread ? kSlow : kTimes;
      all.push_back(on_gpu(std::string("GPU, ") + name_of(way), times, [this, way, times] {
        for (int i = 0; i < times; ++i) {
          cuda::check(enqueue_sum(way, values(), picture_.count, sums() + i, stream()),
                      "cudaLaunchKernel");
        }
      }));
    }
    if (make_cub_sums == nullptr || make_graph == nullptr) {
      result.left_out.emplace_back("CUB and a CUDA graph: they need NVIDIA's own runtime");
      return all;
    }
    all.push_back(on_gpu(
        kCub, kTimes, make_cub_sums({values(), picture_.count, this->sums(), kTimes, stream()})));
    all.push_back(on_gpu(kGraph, kTimes, make_graph(kTimes, stream(), [this](int i) {
                           return enqueue_sum(SumWay::kVectorLoads, values(), picture_.count,
                                              sums() + i, stream());
                         })));
    return all;
  }

 private:
  const float* values() const { return reinterpret_cast<const float*>(values_.data()); }
  float* sums() const { return reinterpret_cast<float*>(sums_.data()); }
  cudaStream_t stream() const { return streams_[0].get(); }

  Contender on_gpu(std::string name, int times, std::function<void()> queue) {
    return contender(picture_, std::move(name), times, [this, times, queue = std::move(queue)] {
      const std::size_t bytes = static_cast<std::size_t>(times) * sizeof(float);
      cuda::check(cudaMemsetAsync(sums(), 0, bytes, stream()), "cudaMemsetAsync");
      queue();
      copy(picture_.sums(), sums(), bytes, cudaMemcpyDeviceToHost, stream());
      streams_.synchronize(1);
    });
  }
  /// A limit: kernels that read nothing. There is no result to compare.
  Contender empty(const char* name, std::function<void()> queue) {
    Contender result = on_gpu(name, kTimes, std::move(queue));
    result.row.bytes = 0;
    result.check = nullptr;
    return result;
  }

  const Picture& picture_;
  DeviceMemory values_, sums_;
  Streams streams_{1};  // the first to go
};

#endif

/// How near the best on the CPU and the best on the GPU come to their limits.
void judge_ceilings(Result& result) {
  const auto fastest = [&result](const std::vector<std::string>& names) {
    const Row* best = nullptr;
    for (const std::string& name : names) {
      const Row* row = result.measured(name);
      if (row != nullptr && (best == nullptr || row->median() < best->median())) best = row;
    }
    return best;
  };
  const Row* best = fastest({kOneByOne, kSideBySide, kSimd});
  const Row* reading = result.measured(kReading);
  if (best != nullptr && reading != nullptr) {
    result.verdict.push_back(fmt::format(
        "{} takes {:.2f} times what reading the picture takes, which one core does at {:.0f} GB/s",
        best->name, best->median() / reading->median(), reading->rate()));
  }
#ifdef FRAMELANE_WITH_CUDA
  std::vector<std::string> ways{kCub};
  for (const SumWay way : kSumWays) ways.push_back(std::string("GPU, ") + name_of(way));
  best = fastest(ways);
  const Row* empty = result.measured(kEmpty);
  const Row* at_once = result.measured(kAtOnce);
  if (best == nullptr || empty == nullptr || at_once == nullptr) return;
  // With a launch for each sum, two things are a limit: launches that do nothing, and reading with
  // one launch for everything. The slower one counts.
  const bool launches = empty->median() > at_once->median();
  result.verdict.push_back(fmt::format(
      "a launch for each sum: {} is the fastest, and takes {:.2f} times what {} takes; the GPU's "
      "caches and memory would give {:.1f} times as much ({:.0f} GB/s, all sums in one launch)",
      best->name, best->median() / (launches ? empty : at_once)->median(),
      launches ? "as many launches of an empty kernel" : "reading alone",
      best->median() / at_once->median(), at_once->rate()));
  const Row* graph = result.measured(kGraph);
  const Row* empty_graph = result.measured(kEmptyGraph);
  if (graph == nullptr || empty_graph == nullptr) return;
  result.verdict.push_back(
      fmt::format("one CUDA graph takes {:.2f} times what a graph of empty kernels takes",
                  graph->median() / empty_graph->median()));
#endif
}

void judge(Result& result) {
  const auto compare = [&result](const char* than, const char* what, const char* words) {
    const Row* slow = result.measured(than);
    const Row* fast = result.measured(what);
    if (slow == nullptr || fast == nullptr) return;
    result.verdict.push_back(
        fmt::format("{}: {:.1f} times as fast", words, slow->median() / fast->median()));
  };
  compare(kOneByOne, kSideBySide, "on one core, additions that need not wait for each other");
  compare(kSideBySide, kSimd, "the widest SIMD of this CPU, than what the compiler makes of that");
  compare("GPU, one thread", "GPU, warp shuffles, vector loads",
          "warp shuffles with vector loads, than one thread");
  compare("GPU, tree in shared memory", "GPU, warp shuffles", "shuffles, than the tree");
  compare("GPU, warp shuffles, vector loads", kGraph,
          "all of it in one graph, than a launch for each sum");
  compare(kCub, "GPU, warp shuffles, vector loads", "our kernel, than CUB");
  compare(kSimd, "GPU, warp shuffles, vector loads",
          "the GPU, the picture being there, than one core");
  judge_ceilings(result);
  judge_luma(result);
}

}  // namespace

void run_reduce(const Session& session, Result& result) {
  const int width = session.width > 0 ? session.width : 512;
  const int height = session.height > 0 ? session.height : 512;
  result.setup.push_back({"size", fmt::format("{}x{}", width, height)});
  result.published_by = "512x512; \"CUDA学习(十三):一步一步为CUDA提速\", CSDN";
  result.published = {{"CPU, OpenCV", 41, kUnit, kSimd}};
  for (const auto& [name, value] : {std::pair{"GPU, one thread", 31418.0},
                                    {"GPU, one block, atomics", 173.0},
                                    {"GPU, many blocks, atomics", 36.0},
                                    {"GPU, tree in shared memory", 21.0}}) {
    result.published.push_back({name, value, kUnit, name});
  }
  const Picture picture(width, height);
  // The ceilings come first.
  std::vector<Contender> contenders{reading_alone(picture)};
  std::vector<Contender> ways = cpu_contenders(picture);
#ifdef FRAMELANE_WITH_CUDA
  std::unique_ptr<ReduceGpu> gpu;
  if (session.gpu != nullptr) {
    try {
      gpu = std::make_unique<ReduceGpu>(context_of(session), picture);
      std::ranges::move(gpu->ceilings(), std::back_inserter(contenders));
      std::ranges::move(gpu->contenders(result), std::back_inserter(ways));
    } catch (const std::exception& error) {
      result.problems.push_back(problem_of_gpu(session, "--size", error));
    }
  }
#endif
  std::ranges::move(ways, std::back_inserter(contenders));
  if (session.gpu == nullptr) result.left_out.push_back("the GPU: " + session.no_gpu);
  std::vector<Size> luma_sizes{k8K, k4K, k1080p};
  if (session.width > 0) luma_sizes = {{"", width, height}};
  const double turn =
      turn_seconds(session, contenders.size() + luma_contenders(session, luma_sizes));
  take_turns(session, turn, contenders, result);
  if (!session.stopped()) measure_luma(session, turn, luma_sizes, result);
  judge(result);
}

}  // namespace framelane::bench
