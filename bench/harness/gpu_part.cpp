#include "bench/harness/gpu_part.hpp"

#include <algorithm>

namespace framelane::bench {

CudaContext& context_of(const Session& session) {
  return *static_cast<CudaDevice&>(*session.gpu).context();
}

Streams::Streams(int count) {
  for (int i = 0; i < count; ++i) streams_.push_back(std::make_unique<CudaStream>());
}

Streams::~Streams() {
  for (const auto& stream : streams_) {
    cuda::report(cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize");
  }
}

void Streams::synchronize(int count) const {
  for (int i = 0; i < count; ++i) (*this)[i].synchronize();
}

int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cuda::check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  cuda::check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
}

int steps_for(double wanted, const std::function<double(int)>& time_of) {
  constexpr int kMost = 1 << 22;
  time_of(1);  // the first launch also loads the kernel
  int steps = 16;
  double time = time_of(steps);
  while (time < wanted / 4 && steps < kMost) {
    steps *= 2;
    time = time_of(steps);
  }
  return static_cast<int>(std::clamp(steps * wanted / time, 1.0, double{kMost}));
}

double kernel_length(double launch, int kernels, double turn) {
  constexpr double kLeast = 2;
  return std::clamp(20 * launch * kernels, kLeast, std::max(kLeast, turn * 1e3 / 4));
}

bool gpu_lacks_memory(const std::exception& error) {
  const auto* cuda = dynamic_cast<const CudaError*>(&error);
  return cuda != nullptr && cuda->code() == cudaErrorMemoryAllocation;
}

std::string problem_of_gpu(const Session& session, const char* option,
                           const std::exception& error) {
  std::string what = "the GPU's part: " + std::string(error.what());
  if (!lacks_memory(error)) return what;
  return what + ", with " + context_of(session).free_memory() + " on " + session.gpu->name() +
         "; ask for less with " + option;
}

}  // namespace framelane::bench
