#include "pipeline/stage/cuda/cuda_device.hpp"

#include <cstdio>
#include <utility>

#include "pipeline/stage/cuda/cuda_stage.hpp"

namespace framelane {

std::string gpu_uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

CudaDevice::CudaDevice(int ordinal, std::shared_ptr<Device> fallback,
                       std::chrono::milliseconds hung_after,
                       std::shared_ptr<GpuRegistrar> registrar)
    : context_(std::make_shared<CudaContext>(ordinal)),
      fallback_(std::move(fallback)),
      registrar_(std::move(registrar)),
      completion_(context_, hung_after) {
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  model_ = properties.name;
  uuid_ = gpu_uuid_text(properties.uuid);
  int read_only = 0;
  cuda::check(cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, ordinal),
              "cudaDeviceGetAttribute");
  registrar_->take(context_, read_only != 0);
}

std::shared_ptr<CudaDevice> CudaDevice::open(int ordinal, std::shared_ptr<Device> fallback,
                                             std::chrono::milliseconds hung_after,
                                             std::shared_ptr<GpuRegistrar> registrar) {
  if (registrar == nullptr) registrar = std::make_shared<GpuRegistrar>();
  return std::shared_ptr<CudaDevice>(
      new CudaDevice(ordinal, std::move(fallback), hung_after, std::move(registrar)));
}

std::unique_ptr<Stage> CudaDevice::make_stage(FeedStats& stats, std::optional<int> slices) {
  if (!lost()) return std::make_unique<CudaStage>(shared_from_this(), stats, slices);
  stats.set_device(fallback_->name());
  return fallback_->make_stage(stats, slices);
}

std::optional<std::size_t> CudaDevice::free_memory_bytes() {
  if (lost()) return std::nullopt;
  std::size_t free = 0;
  std::size_t total = 0;
  try {
    context_->make_current();
    cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  } catch (const CudaError& error) {
    context_->failed("a look at its memory", error);
    return std::nullopt;
  }
  return free;
}

}  // namespace framelane
