#include "bench/experiments/kernels_gpu.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bench/harness/bench_kernels.hpp"
#include "bench/harness/device_code.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane::bench {
namespace {

Word* words(const HostBuffer& buffer) { return reinterpret_cast<Word*>(buffer.data()); }
Word* words(const DeviceMemory& memory) { return reinterpret_cast<Word*>(memory.data()); }

std::string compare_words(const Word* expected, const Word* got, std::size_t count) {
  return first_difference(reinterpret_cast<const std::uint8_t*>(expected),
                          reinterpret_cast<const std::uint8_t*>(got), count * sizeof(Word));
}

/// The words that kernels start with. They repeat after kPeriod, so that the host works out what
/// becomes of them in no time; no two kernels begin at the same word.
class Seeds {
 public:
  static constexpr std::size_t kPeriod = 61;
  static Word at(std::size_t i) { return static_cast<Word>(i % kPeriod) * 2654435761U + 1; }
  /// The first `count` words after `steps` steps.
  static std::vector<Word> mixed(std::size_t count, int steps) {
    std::vector<Word> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = i < kPeriod ? mix_word(at(i), steps) : result[i - kPeriod];
    }
    return result;
  }
};

}  // namespace

std::int64_t connections() {
  const char* value = std::getenv(kCudaConnections);
  return value == nullptr ? 8 : std::atoi(value);  // as CUDA has it
}

bool is_the_other() { return std::getenv(kStepsVariable) != nullptr; }

KernelsGpu::KernelsGpu(CudaContext& context, std::size_t bytes, double turn)
    : bytes_(bytes),
      source_(bytes),
      target_(bytes),
      back_(bytes),
      seeds_(kWords * sizeof(Word)),
      results_(kWords * sizeof(Word)),
      uploaded_(context.allocate(bytes)),
      downloaded_(context.allocate(bytes)),
      device_seeds_(context.allocate(kWords * sizeof(Word))),
      device_results_(context.allocate(kWords * sizeof(Word))) {
  context.memory_stream().synchronize();
  for (std::size_t i = 0; i < bytes / sizeof(Word); ++i) words(source_)[i] = Seeds::at(i * 7 + 3);
  for (std::size_t i = 0; i < kWords; ++i) words(seeds_)[i] = Seeds::at(i);
  copy(device_seeds_.data(), seeds_.data(), kWords * sizeof(Word), cudaMemcpyHostToDevice,
       streams_[0].get());
  copy(downloaded_.data(), source_.data(), bytes, cudaMemcpyHostToDevice, streams_[0].get());
  streams_[0].synchronize();
  choose_steps(turn);
  small_results_ = Seeds::mixed(kWords, small_steps_);
  large_results_ = Seeds::mixed(kWords, large_steps_);
  host_result_ = mix_word(Seeds::at(0), host_steps_);
}

std::vector<Contender> KernelsGpu::contenders() {
  std::vector<Contender> all;
  for (const int threads : kThreadCounts) {
    for (const int kernels : kKernelCounts) all.push_back(many(threads, kernels));
  }
  if (is_the_other()) return all;  // of which no more is used
  const std::array<std::pair<Work, Work>, kPairs> pairs{{{large_kernel(), upload()},
                                                         {upload(), host()},
                                                         {upload(), download()},
                                                         {large_kernel(), host()},
                                                         {small_kernel(0), small_kernel(1)}}};
  for (const auto& [one, other] : pairs) {
    all.push_back(pair(one, other, false));
    all.push_back(pair(one, other, true));
  }
  return all;
}

void KernelsGpu::mix(std::size_t begin, std::size_t count, int steps,
                     const CudaStream& stream) const {
  cuda::check(enqueue_mix(words(device_seeds_) + begin, words(device_results_) + begin, count,
                          steps, stream.get()),
              "cudaLaunchKernel");
}

double KernelsGpu::measure_launch() const {
  std::vector<double> times(5);
  for (double& time : times) {
    time =
        milliseconds([this] {
          for (int i = 0; i < kMostKernels; ++i) {
            mix(static_cast<std::size_t>(i) * kThreadCounts[0], kThreadCounts[0], 1, streams_[i]);
          }
        }) /
        kMostKernels;
    streams_.synchronize(kMostKernels);
  }
  return percentile(times, 0.5);
}

/// What is done in pairs shall take about as long as a copy.
void KernelsGpu::choose_steps(double turn) {
  const auto time_of_mix = [this](std::size_t count) {
    return [this, count](int steps) {
      return milliseconds([&] {
        mix(0, count, steps, streams_[0]);
        streams_[0].synchronize();
      });
    };
  };
  launch_time_ = measure_launch();
  small_time_ = kernel_length(launch_time_, kMostKernels, turn);
  const double copying = milliseconds([this] {
    copy(uploaded_.data(), source_.data(), bytes_, cudaMemcpyHostToDevice, streams_[0].get());
    streams_[0].synchronize();
  });
  const char* const given = std::getenv(kStepsVariable);
  small_steps_ = given != nullptr ? std::max(std::atoi(given), 1)
                                  : steps_for(small_time_, time_of_mix(kThreadCounts[0]));
  large_steps_ = steps_for(copying, time_of_mix(kWords));
  host_steps_ = steps_for(copying, [this](int steps) {
    return milliseconds([&] { host_word_ = mix_word(Seeds::at(0), steps); });
  });
}

void KernelsGpu::spoil_results() const {
  cuda::check(cudaMemsetAsync(device_results_.data(), 0, kWords * sizeof(Word), streams_[0].get()),
              "cudaMemsetAsync");
  streams_[0].synchronize();
}

/// Compares the words [begin, begin + count).
std::string KernelsGpu::check_results(const std::vector<Word>& expected, std::size_t begin,
                                      std::size_t count) const {
  copy(results_.data(), device_results_.data(), kWords * sizeof(Word), cudaMemcpyDeviceToHost,
       streams_[0].get());
  streams_[0].synchronize();
  return compare_words(expected.data() + begin, words(results_) + begin, count);
}

Contender KernelsGpu::many(int threads, int kernels) {
  const auto count = static_cast<std::size_t>(threads);
  return {{.name = "kernels at once",
           .parameters = {{"threads", std::int64_t{threads}},
                          {"connections", connections()},
                          {"kernels", std::int64_t{kernels}}}},
          [this] { spoil_results(); },
          [=, this] {
            return milliseconds([&] {
              for (int i = 0; i < kernels; ++i) {
                mix(static_cast<std::size_t>(i) * count, count, small_steps_, streams_[i]);
              }
              streams_.synchronize(kernels);
            });
          },
          [=, this] {
            return check_results(small_results_, 0, static_cast<std::size_t>(kernels) * count);
          }};
}

Contender KernelsGpu::pair(const Work& one, const Work& other, bool at_once) {
  return {{.name = fmt::format("{} and {}", one.name, other.name),
           .parameters = {{"how", at_once ? "at once" : "in turn"}}},
          [=] {
            one.spoil();
            other.spoil();
          },
          [=, this] {
            return milliseconds([&] {
              one.run(streams_[0]);
              if (!at_once) streams_[0].synchronize();
              other.run(streams_[1]);
              streams_.synchronize(2);
            });
          },
          [=] {
            const std::string wrong = one.check();
            return wrong.empty() ? other.check() : wrong;
          }};
}

KernelsGpu::Work KernelsGpu::upload() {
  return {"copy up",
          [this](const CudaStream& stream) {
            copy(uploaded_.data(), source_.data(), bytes_, cudaMemcpyHostToDevice, stream.get());
          },
          [this] {
            cuda::check(cudaMemsetAsync(uploaded_.data(), 0, bytes_, streams_[0].get()),
                        "cudaMemsetAsync");
            streams_[0].synchronize();
          },
          [this] {
            // Not into target_, which a download beside it may have filled.
            copy(back_.data(), uploaded_.data(), bytes_, cudaMemcpyDeviceToHost, streams_[0].get());
            streams_[0].synchronize();
            return first_difference(source_.data(), back_.data(), bytes_);
          }};
}

KernelsGpu::Work KernelsGpu::download() {
  return {"copy down",
          [this](const CudaStream& stream) {
            copy(target_.data(), downloaded_.data(), bytes_, cudaMemcpyDeviceToHost, stream.get());
          },
          [this] { std::memset(target_.data(), 0, bytes_); },
          [this] { return first_difference(source_.data(), target_.data(), bytes_); }};
}

KernelsGpu::Work KernelsGpu::large_kernel() {
  return {"kernel", [this](const CudaStream& stream) { mix(0, kWords, large_steps_, stream); },
          [this] { spoil_results(); }, [this] { return check_results(large_results_, 0, kWords); }};
}

KernelsGpu::Work KernelsGpu::small_kernel(std::size_t number) {
  const std::size_t count = kThreadCounts[0];
  return {"small kernel",
          [=, this](const CudaStream& stream) { mix(number * count, count, small_steps_, stream); },
          [this] { spoil_results(); },
          [=, this] { return check_results(small_results_, number * count, count); }};
}

KernelsGpu::Work KernelsGpu::host() {
  return {"host", [this](const CudaStream&) { host_word_ = mix_word(Seeds::at(0), host_steps_); },
          [this] { host_word_ = 0; },
          [this] {
            return host_word_ == host_result_ ? std::string() : "the host's own word is another";
          }};
}

}  // namespace framelane::bench
