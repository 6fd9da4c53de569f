// Built instead of the CUDA backend.
#include "pipeline/stage/gpu.hpp"

namespace framelane {
namespace {

constexpr const char* kNone = "this build has no CUDA backend";

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): by value, because gpu.hpp declares it so
GpuResult open_gpu(int, std::shared_ptr<Device>) { return {nullptr, kNone}; }

std::vector<GpuReport> measure_gpus(std::string& why) {
  why = kNone;
  return {};
}

std::string cuda_build_version() { return {}; }
std::string cuda_driver_version() { return {}; }

}  // namespace framelane
