#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "pipeline/stage/cuda/cuda_error.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"

namespace framelane {

/// Allocates GPU memory in the order of one stream, and counts it. Neither allocating nor freeing
/// waits for the GPU. Any thread; the stream's device must be current. Must outlive its memory.
class DevicePool {
 public:
  explicit DevicePool(StreamRef stream) : stream_(stream) {}
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  /// Throws CudaError. The memory may be used by work that comes after an event which was recorded
  /// on stream() after this call.
  std::uint8_t* allocate(std::size_t bytes) {
    void* memory = nullptr;
    cuda::check(cudaMallocAsync(&memory, bytes, stream_.get()), "cudaMallocAsync");
    bytes_ += bytes;
    return static_cast<std::uint8_t*>(memory);
  }
  /// No queued work may still use the memory. `bytes` is what it was allocated with.
  void free(std::uint8_t* data, std::size_t bytes) noexcept {
    cuda::report(cudaFreeAsync(data, stream_.get()), "cudaFreeAsync");
    bytes_ -= bytes;
  }
  /// What is allocated and not freed.
  std::size_t bytes() const { return bytes_; }
  StreamRef stream() const { return stream_; }

 private:
  const StreamRef stream_;
  std::atomic<std::size_t> bytes_{0};
};

/// Owns memory of a DevicePool, whose rules for use and for the end of use hold here.
class DeviceMemory {
 public:
  /// Throws CudaError.
  DeviceMemory(DevicePool& pool, std::size_t bytes)
      : pool_(pool), bytes_(bytes), data_(pool.allocate(bytes)) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : pool_(other.pool_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory() {
    if (data_ != nullptr) pool_.free(data_, bytes_);
  }

  std::uint8_t* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  DevicePool& pool_;
  const std::size_t bytes_;
  std::uint8_t* data_;
};

}  // namespace framelane
