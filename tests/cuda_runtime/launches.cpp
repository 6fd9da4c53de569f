// Entry points of the stand-in runtime: kernel launches, and what code compiled by nvcc calls by
// itself.
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/cuda_runtime/entry.hpp"

namespace framelane::stand_in {
namespace {

struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<CallConfiguration> call_configurations;

cudaError_t launch(const void* entry_point, dim3 grid, dim3 block, void** parameters,
                   cudaStream_t stream) {
  return entry("cudaLaunchKernel", [&](State& s, Lock&) {
    const auto kernel = s.kernels.find(entry_point);
    if (kernel == s.kernels.end() || kernel->second.run == nullptr) {
      return cudaErrorInvalidDeviceFunction;
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
        block.x != kernel->second.block.x || block.y != kernel->second.block.y ||
        block.z != kernel->second.block.z || block.x * block.y * block.z > 1024) {
      return cudaErrorInvalidConfiguration;
    }
    if (!std::exchange(kernel->second.loaded, true)) ++s.lazy_loads;
    const auto* first = static_cast<const std::byte*>(parameters[0]);
    std::vector<std::byte> body(first, first + kernel->second.body_bytes);
    const cuda::HostBody run = kernel->second.run;
    return enqueue(s, stream,
                   {[run, grid, body = std::move(body)] { run(body.data(), grid); }, nullptr});
  });
}

}  // namespace
}  // namespace framelane::stand_in

using namespace framelane::stand_in;

void framelane_cuda_host_body(const void* kernel, std::size_t body_bytes,
                              framelane::cuda::HostBody run, dim3 block) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  Kernel& known = s.kernels[kernel];
  known.body_bytes = body_bytes;
  known.run = run;
  known.block = block;
}

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return entry("cudaFuncGetAttributes", [&](State& s, Lock&) {
    const auto found = s.kernels.find(kernel);
    if (found == s.kernels.end()) return cudaErrorInvalidDeviceFunction;
    *attributes = {};
    attributes->maxThreadsPerBlock = framelane::cuda::kBlockThreads;
    found->second.loaded = true;
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** parameters,
                             std::size_t, cudaStream_t stream) {
  return launch(kernel, grid, block, parameters, stream);
}

// What <<<>>> becomes, and what nvcc puts into every object with kernels. A kernel's handle is its
// entry point here.
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     CUstream_st* stream) {
  call_configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
  if (call_configurations.empty()) return cudaErrorInvalidConfiguration;
  const CallConfiguration top = call_configurations.back();
  call_configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* kernel) {
  *handle = static_cast<cudaKernel_t>(const_cast<void*>(kernel));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** parameters,
                               std::size_t, cudaStream_t stream) {
  return launch(kernel, grid, block, parameters, stream);
}

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* kernel, char*, const char*, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.kernels.try_emplace(kernel);
}

char __cudaInitModule(void**) { return 1; }

}  // extern "C"
