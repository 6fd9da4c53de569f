// Of the program alone, which is linked with NVIDIA's runtime.
#include <cub/device/device_reduce.cuh>
#include <memory>

#include "bench/experiments/sum_kernels.hpp"
#include "pipeline/stage/cuda/cuda_error.hpp"

namespace framelane::bench {
namespace {

struct Free {
  void operator()(void* memory) const { cuda::report(cudaFree(memory), "cudaFree"); }
};

}  // namespace

std::function<void()> make_cub_sums(const ManySums& sums) {
  const auto count = static_cast<int>(sums.count);
  std::size_t bytes = 0;
  cuda::check(cub::DeviceReduce::Sum(nullptr, bytes, sums.values, sums.sums, count, sums.stream),
              "cub::DeviceReduce::Sum");
  void* memory = nullptr;
  cuda::check(cudaMalloc(&memory, bytes), "cudaMalloc");
  const std::shared_ptr<void> scratch(memory, Free());
  return [sums, scratch, count, bytes]() mutable {
    for (int i = 0; i < sums.times; ++i) {
      cuda::check(cub::DeviceReduce::Sum(scratch.get(), bytes, sums.values, sums.sums + i, count,
                                         sums.stream),
                  "cub::DeviceReduce::Sum");
    }
  };
}

}  // namespace framelane::bench
