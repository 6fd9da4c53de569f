#include "kernels/cuda/kernel.hpp"
#include "tests/cuda_runtime/counting_kernel.hpp"

namespace framelane {
namespace {

struct Count {
  std::uint32_t* numbers;
  unsigned count;

  FRAMELANE_HD void operator()(cuda::ThreadIndex thread) const {
    if (thread.x < count) numbers[thread.x] += 1;
  }
};

__global__ void plain_kernel() {}

}  // namespace

cudaError_t enqueue_count(std::uint32_t* numbers, unsigned count, cudaStream_t stream) {
  return cuda::launch<cuda::Residency::kAny>(static_cast<int>(count), 1, 1, stream,
                                             Count{numbers, count});
}

cudaError_t enqueue_plain_kernel(cudaStream_t stream) {
  plain_kernel<<<1, cuda::kBlockThreads, 0, stream>>>();
  return cudaGetLastError();
}

}  // namespace framelane
