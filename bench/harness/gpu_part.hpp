// What the suites' parts for a GPU share. Only with the CUDA backend.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/turns.hpp"
#include "pipeline/stage/cuda/cuda_device.hpp"

namespace framelane::bench {

/// Requires session.gpu.
CudaContext& context_of(const Session& session);

/// Streams whose destructor waits for all that is queued on them, so that memory which is destroyed
/// afterwards is no longer in use.
class Streams {
 public:
  explicit Streams(int count);
  ~Streams();

  const CudaStream& operator[](int index) const {
    return *streams_[static_cast<std::size_t>(index)];
  }
  /// Waits for the first `count`.
  void synchronize(int count) const;
  int size() const { return static_cast<int>(streams_.size()); }

 private:
  std::vector<std::unique_ptr<CudaStream>> streams_;
};

/// Of the current device. Throws CudaError.
int attribute(cudaDeviceAttr which);

/// Queues a copy. Throws CudaError.
void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);

/// How many steps of a work take about `wanted` milliseconds, where time_of(steps) does so many of
/// them and returns how long it took.
int steps_for(double wanted, const std::function<double(int)>& time_of);

/// How many milliseconds a kernel has to take, if `kernels` of them are to run at once and the host
/// takes `launch` ms to launch one: so long that all are launched within a twentieth of it. At most
/// a quarter of a turn (in seconds), and at least 2 ms.
double kernel_length(double launch, int kernels, double turn);

/// One line that says why the GPU was not measured; `option` is the one that asks for less memory.
std::string problem_of_gpu(const Session& session, const char* option, const std::exception& error);

}  // namespace framelane::bench
