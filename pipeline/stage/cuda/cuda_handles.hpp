#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <utility>

#include "pipeline/stage/cuda/cuda_error.hpp"

namespace framelane {

// CUDA's streams and events: owners (CudaStream, CudaEvent) and a view (StreamRef). An owner's
// object belongs to the device that is current when it is made. It may be destroyed while work on
// it is still queued: CUDA frees it when that work is done. Constructors, and members that queue
// work or wait, throw CudaError; destructors report. May be used by any thread, unless its owner
// says otherwise.

/// A view of a stream, which somebody else owns and which must outlive the view.
class StreamRef {
 public:
  explicit StreamRef(cudaStream_t stream) : stream_(stream) {}

  cudaStream_t get() const { return stream_; }
  /// Work that is queued from now on waits, on the GPU, for the work that `event` stands for.
  void wait(cudaEvent_t event) const {
    cuda::check(cudaStreamWaitEvent(stream_, event, 0), "cudaStreamWaitEvent");
  }
  /// True if everything queued is done. Does not block.
  bool is_idle() const {
    const cudaError_t result = cudaStreamQuery(stream_);
    if (result == cudaErrorNotReady) return false;
    cuda::check(result, "cudaStreamQuery");
    return true;
  }
  /// Blocks until everything queued is done.
  void synchronize() const { cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_;
};

/// Owns a stream that does not wait for CUDA's default stream.
class CudaStream {
 public:
  CudaStream() {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
  }
  ~CudaStream() { cuda::report(cudaStreamDestroy(stream_), "cudaStreamDestroy"); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  // Implicit: every function that takes a stream takes a StreamRef.
  operator StreamRef() const { return ref(); }  // NOLINT(google-explicit-constructor)
  StreamRef ref() const { return StreamRef(stream_); }
  cudaStream_t get() const { return stream_; }
  void synchronize() const { ref().synchronize(); }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  enum class Kind : unsigned {
    kOrder = cudaEventDisableTiming,  ///< for other streams to wait for
    kTime = cudaEventDefault,         ///< also has a time
    kDone = cudaEventBlockingSync,    ///< has a time, and a thread that waits for it sleeps
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
  /// From now on the event stands for the work that `stream` has queued so far.
  void record(StreamRef stream) const {
    cuda::check(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
  }
  /// Blocks until the work that was recorded last is done.
  void synchronize() const { cuda::check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  /// True if the work that was recorded last is done. Does not block.
  bool has_come() const {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) return false;
    cuda::check(result, "cudaEventQuery");
    return true;
  }
  /// The time from `earlier` to this event. Both have a time and have come, in this order.
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

}  // namespace framelane
