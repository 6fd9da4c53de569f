#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "pipeline/stage/cuda/cuda_error.hpp"

namespace framelane {

// Owners of CUDA's objects. They belong to the device that is current when they are made, and may
// be destroyed while work on them is still queued: CUDA lets go of them when it is through.
// Constructors and members that queue work throw CudaError; destructors report.

/// A stream that does not wait for the default one.
class CudaStream {
 public:
  CudaStream() {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
  }
  ~CudaStream() { cuda::report(cudaStreamDestroy(stream_), "cudaStreamDestroy"); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }
  /// What is queued from now on waits for what `event` stands for.
  void wait(cudaEvent_t event) const {
    cuda::check(cudaStreamWaitEvent(stream_, event, 0), "cudaStreamWaitEvent");
  }
  /// Whether everything queued is done.
  bool is_idle() const {
    const cudaError_t result = cudaStreamQuery(stream_);
    if (result == cudaErrorNotReady) return false;
    cuda::check(result, "cudaStreamQuery");
    return true;
  }
  /// Blocks until everything queued is done.
  void synchronize() const { cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  enum class Kind : unsigned {
    kOrder = cudaEventDisableTiming,  ///< for other streams to wait for
    kTime = cudaEventDefault,
    kDone = cudaEventBlockingSync,  ///< timed, and a thread sleeps until it comes
  };
  explicit CudaEvent(Kind kind) {
    cuda::check(cudaEventCreateWithFlags(&event_, static_cast<unsigned>(kind)),
                "cudaEventCreateWithFlags");
  }
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&&) = delete;
  ~CudaEvent() {
    if (event_ != nullptr) cuda::report(cudaEventDestroy(event_), "cudaEventDestroy");
  }

  cudaEvent_t get() const { return event_; }
  void record(const CudaStream& stream) const {
    cuda::check(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
  }
  /// Blocks until what was recorded last has come.
  void synchronize() const { cuda::check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  /// Whether what was recorded last has come.
  bool has_come() const {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) return false;
    cuda::check(result, "cudaEventQuery");
    return true;
  }
  /// How long after `earlier` it came. Both are timed and have come, in this order.
  std::chrono::nanoseconds since(const CudaEvent& earlier) const {
    float milliseconds = 0;
    cuda::check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_),
                "cudaEventElapsedTime");
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(milliseconds));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Memory of a GPU, from its stream-ordered pool: neither having nor freeing it waits for the
/// device. May be used by work that comes after an event recorded on `stream` after the
/// construction, and is to be destroyed when no queued work uses it any more.
class DeviceMemory {
 public:
  /// `held` counts the bytes; both references must stay until the destruction.
  DeviceMemory(std::size_t bytes, const CudaStream& stream, std::atomic<std::size_t>& held)
      : bytes_(bytes), stream_(&stream), held_(&held) {
    void* memory = nullptr;
    cuda::check(cudaMallocAsync(&memory, bytes, stream.get()), "cudaMallocAsync");
    data_ = static_cast<std::uint8_t*>(memory);
    held += bytes;
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        stream_(other.stream_),
        held_(other.held_) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory() {
    if (data_ == nullptr) return;
    cuda::report(cudaFreeAsync(data_, stream_->get()), "cudaFreeAsync");
    *held_ -= bytes_;
  }

  std::uint8_t* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t bytes_;
  const CudaStream* stream_;
  std::atomic<std::size_t>* held_;
};

}  // namespace framelane
