// Built instead of the CUDA backend.
#include "pipeline/stage/gpu.hpp"

namespace framelane {
namespace {

constexpr const char* kNone = "this build has no CUDA backend";

}  // namespace

int count_gpus(std::string& why) {
  why = kNone;
  return 0;
}

std::vector<GpuResult> open_gpus(std::span<const int> ordinals, const std::shared_ptr<Device>&) {
  return {ordinals.size(), GpuResult{nullptr, kNone}};
}

GpuResult open_gpu(int, const std::shared_ptr<Device>&) { return {nullptr, kNone}; }

std::vector<GpuReport> measure_gpus(std::string& why) {
  why = kNone;
  return {};
}

std::string cuda_build_version() { return {}; }
std::string cuda_driver_version() { return {}; }

}  // namespace framelane
