#include "pipeline/stage/cuda/cuda_device.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/stage/cuda/cuda_stage.hpp"

namespace framelane {
namespace {

/// For messages: "1234 MiB available", as the kernel estimates it.
std::string available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);) {
    if (key == "MemAvailable:") {
      return std::to_string(std::strtoull(rest.c_str(), nullptr, 10) >> 10) + " MiB available";
    }
  }
  return "an unknown amount available";
}

}  // namespace

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
                       std::chrono::milliseconds hung_after)
    : context_(std::make_shared<CudaContext>(ordinal)),
      fallback_(std::move(fallback)),
      completion_(context_, hung_after) {
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  model_ = properties.name;
  uuid_ = gpu_uuid_text(properties.uuid);
  int read_only = 0;
  cuda::check(cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, ordinal),
              "cudaDeviceGetAttribute");
  registers_read_only_ = read_only != 0;
}

std::shared_ptr<CudaDevice> CudaDevice::open(int ordinal, std::shared_ptr<Device> fallback,
                                             std::chrono::milliseconds hung_after) {
  std::shared_ptr<CudaDevice> device(new CudaDevice(ordinal, std::move(fallback), hung_after));
  set_host_registrar(device.get());
  device->opened_ = true;
  return device;
}

CudaDevice::~CudaDevice() { set_host_registrar(nullptr); }

std::unique_ptr<Stage> CudaDevice::make_stage(FeedStats& stats, std::optional<int> slices) {
  if (!lost()) return std::make_unique<CudaStage>(shared_from_this(), stats, slices);
  stats.set_device(fallback_->name());
  return fallback_->make_stage(stats, slices);
}

void CudaDevice::add(const std::uint8_t* data, std::size_t bytes, HostAccess access) {
  if (lost()) return;
  unsigned flags = cudaHostRegisterPortable;
  if (access == HostAccess::kRead) {
    if (!registers_read_only_) {
      if (said_read_only_.exchange(true)) return;
      log::warn(
          "{} cannot lock memory that it may only read: frames of other processes are uploaded "
          "more slowly",
          name());
      return;
    }
    flags |= cudaHostRegisterReadOnly;
  }
  try {
    context_->make_current();
    cuda::check(cudaHostRegister(const_cast<std::uint8_t*>(data), bytes, flags),
                "cudaHostRegister");
  } catch (const CudaError& error) {
    if (error.code() == cudaErrorMemoryAllocation) {
      throw FeedError(FeedFault::kMemory,
                      std::to_string(bytes >> 20) + " MiB more cannot be locked for " + name() +
                          ", beside " + std::to_string(host_memory_bytes() >> 20) +
                          " MiB that are and with " + available_memory() + ": " + error.what() +
                          "; use a smaller ring or fewer feeds");
    }
    if (!opened_) throw;
    context_->failed("frame memory", error);
    if (lost()) return;
    throw FeedError(FeedFault::kMemory,
                    "memory cannot be registered with " + name() + ": " + error.what());
  }
}

void CudaDevice::remove(const std::uint8_t* data, HostAccess access) noexcept {
  if (access == HostAccess::kRead && !registers_read_only_) return;
  // Unregistering waits for the GPU, and would hang with it. This memory stays locked until the
  // process ends.
  if (context_->has_abandoned_jobs()) return;
  context_->try_make_current();
  const cudaError_t result = cudaHostUnregister(const_cast<std::uint8_t*>(data));
  // After a loss an error is no news, and buffers made since then were never registered.
  if (!lost()) cuda::report(result, "cudaHostUnregister");
}

}  // namespace framelane
