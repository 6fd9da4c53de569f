#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace framelane {

/// A CUDA call that failed: "cudaMemcpyAsync: an illegal memory access was encountered
/// (cudaErrorIllegalAddress)". Whoever catches it adds the feed and the lane.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* call);
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

namespace cuda {

/// Throws CudaError unless `result` is success. `call`: the name of the function that returned it.
inline void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess) throw CudaError(result, call);
}

/// Logs a call that failed; for destructors. Logs nothing after stop_reports.
void report(cudaError_t result, const char* call) noexcept;
/// To be called when a GPU is lost: every later call fails, and the loss itself has been logged.
void stop_reports() noexcept;

}  // namespace cuda
}  // namespace framelane
