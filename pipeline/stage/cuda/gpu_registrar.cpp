#include "pipeline/stage/cuda/gpu_registrar.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/log.hpp"

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

void GpuRegistrar::take(std::shared_ptr<CudaContext> gpu, bool read_only) {
  {
    const std::lock_guard lock(mutex_);
    gpus_.push_back(std::make_unique<const Gpu>(Gpu{std::move(gpu), read_only}));
  }
  if (opened_) return;
  try {
    set_host_registrar(this);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    gpus_.pop_back();
    throw;
  }
  opened_ = true;
}

const GpuRegistrar::Gpu* GpuRegistrar::live_gpu() {
  const std::lock_guard lock(mutex_);
  const auto live =
      std::ranges::find_if(gpus_, [](const auto& gpu) { return !gpu->context->lost(); });
  return live == gpus_.end() ? nullptr : live->get();
}

void GpuRegistrar::add(const std::uint8_t* data, std::size_t bytes, HostAccess access) {
  const Gpu* const gpu = live_gpu();
  if (gpu == nullptr) return;
  unsigned flags = cudaHostRegisterPortable;
  if (access == HostAccess::kRead) {
    if (!gpu->read_only) {
      if (said_read_only_.exchange(true)) return;
      log::warn(
          "{} cannot lock memory that it may only read: frames of other processes are uploaded "
          "more slowly",
          gpu->context->name());
      return;
    }
    flags |= cudaHostRegisterReadOnly;
  }
  try {
    gpu->context->make_current();
    cuda::check(cudaHostRegister(const_cast<std::uint8_t*>(data), bytes, flags),
                "cudaHostRegister");
  } catch (const CudaError& error) {
    if (error.code() != cudaErrorMemoryAllocation && !opened_) throw;
    if (error.code() != cudaErrorMemoryAllocation) gpu->context->failed("frame memory", error);
    if (gpu->context->lost()) return add(data, bytes, access);  // with the next GPU
    refuse(*gpu, bytes, error);
  }
  const std::lock_guard lock(mutex_);
  registered_by_[data] = gpu;
}

void GpuRegistrar::refuse(const Gpu& gpu, std::size_t bytes, const CudaError& error) {
  if (error.code() != cudaErrorMemoryAllocation) {
    throw FeedError(FeedFault::kMemory, "memory cannot be registered with " + gpu.context->name() +
                                            ": " + error.what());
  }
  throw FeedError(FeedFault::kMemory, std::to_string(bytes >> 20) +
                                          " MiB more cannot be locked for " + gpu.context->name() +
                                          ", beside " + std::to_string(host_memory_bytes() >> 20) +
                                          " MiB that are and with " + available_memory() + ": " +
                                          error.what() + "; use a smaller ring or fewer feeds");
}

bool GpuRegistrar::remove(const std::uint8_t* data) noexcept {
  const Gpu* gpu = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = registered_by_.find(data);
    if (found == registered_by_.end()) return true;
    gpu = found->second;
    registered_by_.erase(found);
  }
  // Unregistering waits for the GPU, and would hang with it. This memory stays locked until the
  // process ends.
  if (gpu->context->hangs()) return false;
  gpu->context->try_make_current();
  const cudaError_t result = cudaHostUnregister(const_cast<std::uint8_t*>(data));
  if (!gpu->context->lost()) cuda::report(result, "cudaHostUnregister");
  return result == cudaSuccess;
}

bool GpuRegistrar::another_hangs(const CudaContext& than) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(gpus_, [&than](const auto& gpu) {
    return gpu->context.get() != &than && gpu->context->hangs();
  });
}

}  // namespace framelane
