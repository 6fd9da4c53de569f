// What the suites' parts for a GPU share. Only where there is the CUDA backend.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/suites/turns.hpp"
#include "pipeline/stage/cuda/cuda_device.hpp"

namespace framelane::bench {

inline CudaContext& context_of(const Session& session) {
  return *static_cast<CudaDevice&>(*session.gpu).context();
}

/// Streams that have nothing left to do when they go, so that memory which goes after them is free.
class Streams {
 public:
  explicit Streams(int count) {
    for (int i = 0; i < count; ++i) streams_.push_back(std::make_unique<CudaStream>());
  }
  ~Streams() {
    for (const auto& stream : streams_) {
      cuda::report(cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize");
    }
  }

  const CudaStream& operator[](int index) const {
    return *streams_[static_cast<std::size_t>(index)];
  }
  void synchronize(int count) const {
    for (int i = 0; i < count; ++i) (*this)[i].synchronize();
  }
  int size() const { return static_cast<int>(streams_.size()); }

 private:
  std::vector<std::unique_ptr<CudaStream>> streams_;
};

/// Of the current device.
inline int attribute(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cuda::check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

inline void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  cuda::check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
}

/// How many steps take about so many milliseconds, of work of which time_of(steps) gives the time.
inline int steps_for(double wanted, const std::function<double(int)>& time_of) {
  constexpr int kMost = 1 << 22;
  time_of(1);  // loads what there is to load
  int steps = 16;
  double time = time_of(steps);
  while (time < wanted / 4 && steps < kMost) {
    steps *= 2;
    time = time_of(steps);
  }
  return static_cast<int>(std::clamp(steps * wanted / time, 1.0, double{kMost}));
}

/// How many milliseconds kernels are to take of which `kernels` shall run at once, where the host
/// takes `launch` ms for a launch: so long that the last is launched within a twentieth of it, but
/// not longer than a quarter of a turn (seconds), and 2 ms at least.
inline double kernel_length(double launch, int kernels, double turn) {
  constexpr double kLeast = 2;
  return std::clamp(20 * launch * kernels, kLeast, std::max(kLeast, turn * 1e3 / 4));
}

/// Whether memory, on the GPU or for frames, is what was lacking.
inline bool is_for_want_of_memory(const std::exception& error) {
  if (const auto* cuda = dynamic_cast<const CudaError*>(&error)) {
    return cuda->code() == cudaErrorMemoryAllocation;
  }
  return has_no_memory(error);
}

/// Why a suite goes without the GPU's part, as a line; `option` asks for less memory.
inline std::string problem_of_gpu(const Session& session, const char* option,
                                  const std::exception& error) {
  const std::string what = "the GPU's part: " + std::string(error.what());
  if (!is_for_want_of_memory(error)) return what;
  return what + ", with " + context_of(session).free_memory() + " on " + session.gpu->name() +
         "; ask for less with " + option;
}

}  // namespace framelane::bench
