// What the suite `kernels` runs on a GPU. Only with the CUDA backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "bench/harness/gpu_part.hpp"
#include "pipeline/frames/host_buffer.hpp"

namespace framelane::bench {

inline constexpr int kThreadCounts[] = {1024, 2048};
inline constexpr int kKernelCounts[] = {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128};
inline constexpr int kMostKernels = 128;
inline constexpr int kMostThreads = 2048;
inline constexpr std::int64_t kFewConnections = 8;
inline constexpr std::int64_t kManyConnections = 32;  ///< as open_gpu has it
/// How many steps the small kernels take. This process chooses it, by timing them, and tells it to
/// the process with few connections by this variable.
inline constexpr const char* kStepsVariable = "FRAMELANE_BENCH_KERNEL_STEPS";
inline constexpr std::size_t kCurvePoints = std::size(kThreadCounts) * std::size(kKernelCounts);
inline constexpr std::size_t kPairs = 5;
inline constexpr std::size_t kWords = std::size_t{kMostKernels} * kMostThreads;

using Word = std::uint32_t;

/// How many queues CUDA's streams of this process share.
std::int64_t connections();

/// Whether this is the process with few connections, which another one has started.
bool is_the_other();

/// The work of `kernels` on a GPU: many small kernels, and pairs of what can be done at once. One
/// thread; throws CudaError and FeedError(kMemory).
class KernelsGpu {
 public:
  static constexpr std::size_t kBuffers = 3;  ///< in host memory, of so many bytes each

  /// `turn`: seconds that each contender has in a round. The context must outlive this.
  KernelsGpu(CudaContext& context, std::size_t bytes, double turn);

  /// They refer to this object.
  std::vector<Contender> contenders();

  int small_steps() const { return small_steps_; }
  /// What the host takes for a launch, and what a small kernel is to take; ms.
  double launch_time() const { return launch_time_; }
  double small_time() const { return small_time_; }

 private:
  /// One of two things that are to be done at once: by a stream, or by the calling thread.
  struct Work {
    const char* name;
    std::function<void(const CudaStream&)> run;
    std::function<void()> spoil;
    std::function<std::string()> check;
  };

  void mix(std::size_t begin, std::size_t count, int steps, const CudaStream& stream) const;
  double measure_launch() const;
  void choose_steps(double turn);
  void spoil_results() const;
  std::string check_results(const std::vector<Word>& expected, std::size_t begin,
                            std::size_t count) const;
  Contender many(int threads, int kernels);
  Contender pair(const Work& one, const Work& other, bool at_once);
  Work upload();
  Work download();
  Work large_kernel();
  Work small_kernel(std::size_t number);
  Work host();

  const std::size_t bytes_;
  HostBuffer source_, target_, back_, seeds_, results_;
  DeviceMemory uploaded_, downloaded_, device_seeds_, device_results_;
  double launch_time_ = 0, small_time_ = 0;
  int small_steps_ = 0, large_steps_ = 0, host_steps_ = 0;
  std::vector<Word> small_results_, large_results_;
  volatile Word host_word_ = 0;
  Word host_result_ = 0;
  Streams streams_{kMostKernels};  // last, so that it is destroyed first
};

}  // namespace framelane::bench
