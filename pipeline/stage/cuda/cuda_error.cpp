#include "pipeline/stage/cuda/cuda_error.hpp"

#include <atomic>
#include <string>

#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

std::atomic<bool> g_silent{false};

std::string text_of(cudaError_t code, const char* call) {
  return std::string(call) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ')';
}

}  // namespace

CudaError::CudaError(cudaError_t code, const char* call)
    : std::runtime_error(text_of(code, call)), code_(code) {
  cudaGetLastError();  // clears the error, which a later call would otherwise return
}

namespace cuda {

void report(cudaError_t result, const char* call) noexcept {
  if (result == cudaSuccess || g_silent) return;
  cudaGetLastError();
  log::warn("{}", text_of(result, call));
}

void stop_reports() noexcept { g_silent = true; }

}  // namespace cuda
}  // namespace framelane
