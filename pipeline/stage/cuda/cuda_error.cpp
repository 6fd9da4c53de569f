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
  cudaGetLastError();  // an error that is kept would be taken for a later call's
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
