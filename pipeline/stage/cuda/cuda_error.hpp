#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace framelane {

/// A CUDA call that failed: "cudaMemcpyAsync: an illegal memory access was encountered
/// (cudaErrorIllegalAddress)". Who catches it adds the feed and the lane.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* call);
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

namespace cuda {

/// Throws CudaError unless the call, whose name this is, succeeded.
inline void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess) throw CudaError(result, call);
}

/// For destructors: logs a call that failed. Silent once a GPU of this process was lost: then every
/// call fails, and the loss has been logged.
void report(cudaError_t result, const char* call) noexcept;
void stop_reports() noexcept;

}  // namespace cuda
}  // namespace framelane
