// The sum of a picture of floats, a thousand times: from one thread of a GPU to a CUDA graph.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "bench/suites/suite.hpp"
#include "pipeline/host_buffer.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/suites/gpu_part.hpp"
#include "bench/suites/sum_kernels.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr int kTimes = 1000;
constexpr const char* kUnit = "ms per 1000";

/// Numbers whose sum is exact in whatever order they are added, and one sum for each time.
class Picture {
 public:
  Picture(int width, int height)
      : count(static_cast<std::size_t>(width) * static_cast<std::size_t>(height)),
        values_(count * sizeof(float)),
        sums_(kTimes * sizeof(float)) {
    // Whole numbers, not all 0, that add up to 2^24 at most.
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

/// `add` makes the first `times` of the sums; what takes long does so fewer times.
Contender contender(const Picture& picture, std::string name, int times,
                    std::function<void()> add) {
  Row row{.name = std::move(name), .unit = kUnit};
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

/// Additions that need not wait for each other, for SIMD.
float wide_sum(const float* values, std::size_t count) {
  constexpr std::size_t kWide = 64;
  float sums[kWide] = {};
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    for (std::size_t lane = 0; lane < kWide; ++lane) sums[lane] += values[i + lane];
  }
  return plain_sum(sums, kWide) + plain_sum(values + i, count - i);
}

std::vector<Contender> cpu_contenders(const Picture& picture) {
  const auto with = [&picture](const char* name, float (*sum)(const float*, std::size_t)) {
    return contender(picture, name, kTimes, [&picture, sum] {
      for (int i = 0; i < kTimes; ++i) picture.sums()[i] = sum(picture.values(), picture.count);
    });
  };
  return {with("CPU, one after the other", plain_sum), with("CPU, 64 sums side by side", wide_sum)};
}

#ifdef FRAMELANE_WITH_CUDA

/// The picture is on the GPU; what comes back are the sums.
class ReduceGpu {
 public:
  ReduceGpu(CudaContext& context, const Picture& picture)
      : picture_(picture),
        values_(picture.count * sizeof(float), context.memory_stream(), context.memory_bytes),
        sums_(kTimes * sizeof(float), context.memory_stream(), context.memory_bytes) {
    context.memory_stream().synchronize();
    copy(values_.data(), picture.values(), picture.count * sizeof(float), cudaMemcpyHostToDevice,
         stream());
    streams_.synchronize(1);
  }

  std::vector<Contender> contenders(Result& result) {
    constexpr int kSlow = 10;
    std::vector<Contender> all;
    for (const SumWay way : kSumWays) {
      const int times = way == SumWay::kOneThread ? kSlow : kTimes;
      all.push_back(on_gpu(name_of(way), times, [this, way, times] {
        for (int i = 0; i < times; ++i) {
          cuda::check(enqueue_sum(way, values(), picture_.count, sums() + i, stream()),
                      "cudaLaunchKernel");
        }
      }));
    }
    if (make_cub_sums == nullptr || make_graph_of_sums == nullptr) {
      result.left_out.emplace_back("CUB and a CUDA graph: they need NVIDIA's own runtime");
      return all;
    }
    const ManySums sums{values(), picture_.count, this->sums(), kTimes, stream()};
    all.push_back(on_gpu("CUB", kTimes, make_cub_sums(sums)));
    all.push_back(on_gpu("one CUDA graph", kTimes, make_graph_of_sums(sums)));
    return all;
  }

 private:
  const float* values() const { return reinterpret_cast<const float*>(values_.data()); }
  float* sums() const { return reinterpret_cast<float*>(sums_.data()); }
  cudaStream_t stream() const { return streams_[0].get(); }

  Contender on_gpu(std::string name, int times, std::function<void()> queue) {
    return contender(picture_, "GPU, " + std::move(name), times,
                     [this, times, queue = std::move(queue)] {
                       const std::size_t bytes = static_cast<std::size_t>(times) * sizeof(float);
                       cuda::check(cudaMemsetAsync(sums(), 0, bytes, stream()), "cudaMemsetAsync");
                       queue();
                       copy(picture_.sums(), sums(), bytes, cudaMemcpyDeviceToHost, stream());
                       streams_.synchronize(1);
                     });
  }

  const Picture& picture_;
  DeviceMemory values_, sums_;
  Streams streams_{1};  // the first to go
};

#endif

void judge(Result& result) {
  const auto compare = [&result](const char* than, const char* what, const char* words) {
    const Row* slow = result.measured(than);
    const Row* fast = result.measured(what);
    if (slow == nullptr || fast == nullptr) return;
    result.verdict.push_back(
        fmt::format("{}: {:.1f} times as fast", words, slow->median() / fast->median()));
  };
  compare("CPU, one after the other", "CPU, 64 sums side by side",
          "on one core, additions that need not wait for each other");
  compare("GPU, one thread", "GPU, warp shuffles, vector loads",
          "warp shuffles with vector loads, than one thread");
  compare("GPU, tree in shared memory", "GPU, warp shuffles", "shuffles, than the tree");
  compare("GPU, warp shuffles, vector loads", "GPU, one CUDA graph",
          "all of it in one graph, than a launch for each sum");
  compare("GPU, CUB", "GPU, warp shuffles, vector loads", "our kernel, than CUB");
  compare("CPU, 64 sums side by side", "GPU, warp shuffles, vector loads",
          "the GPU, the picture being there, than one core");
}

}  // namespace

void run_reduce(const Session& session, Result& result) {
  const int width = session.width > 0 ? session.width : 512;
  const int height = session.height > 0 ? session.height : 512;
  result.setup.push_back({"size", fmt::format("{}x{}", width, height)});
  result.published_by = "512x512; \"CUDA学习(十三):一步一步为CUDA提速\", CSDN";
  result.published = {{"CPU, OpenCV", 41, kUnit},
                      {"GPU, one thread", 31418, kUnit},
                      {"GPU, one block, atomics", 173, kUnit},
                      {"GPU, many blocks, atomics", 36, kUnit},
                      {"GPU, tree in shared memory", 21, kUnit}};
  const Picture picture(width, height);
  std::vector<Contender> contenders = cpu_contenders(picture);
#ifdef FRAMELANE_WITH_CUDA
  std::unique_ptr<ReduceGpu> gpu;
  if (session.gpu != nullptr) {
    try {
      gpu = std::make_unique<ReduceGpu>(context_of(session), picture);
      for (Contender& one : gpu->contenders(result)) contenders.push_back(std::move(one));
    } catch (const CudaError& error) {
      result.problems.push_back(problem_of_gpu(session, "--size", error));
    }
  }
#endif
  if (session.gpu == nullptr) result.left_out.push_back("the GPU: " + session.no_gpu);
  take_turns(session, contenders, result);
  judge(result);
}

}  // namespace framelane::bench
