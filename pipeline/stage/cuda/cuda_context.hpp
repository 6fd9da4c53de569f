#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/measure/engine_meters.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"
#include "pipeline/stage/cuda/device_clock.hpp"

namespace framelane {

/// What the lanes, plans and jobs of one GPU share. Whatever may still be in the GPU's hands owns a
/// part of it, so that it outlives a device and stages that had to leave work behind. Thread-safe
/// but for what is of the completion thread alone.
class CudaContext {
 public:
  /// Makes GPU `ordinal` the current one. Throws CudaError.
  explicit CudaContext(int ordinal);
  ~CudaContext() { try_make_current(); }
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  /// Whoever makes CUDA calls says first for which GPU. Throws CudaError.
  void make_current() const;
  void try_make_current() const noexcept { cudaSetDevice(ordinal_); }

  /// The copy gate: all uploads of all feeds go through one stream and all downloads through
  /// another, so that they queue instead of sharing the bus, which is slower. Kernels have one
  /// stream as well: more streams than the GPU has queues hold each other up. Who queues a job
  /// holds copy_gate, so that jobs are in the same order in all three.
  std::mutex copy_gate;
  const CudaStream& upload_stream() const { return upload_stream_; }
  const CudaStream& kernel_stream() const { return kernel_stream_; }
  const CudaStream& download_stream() const { return download_stream_; }

  /// Where GPU memory is had and freed in order.
  const CudaStream& memory_stream() const { return memory_stream_; }
  /// Where NVDEC's pictures become frames, those of all feeds: one is there when what is queued
  /// here by the time the decoder has returned it is done.
  const CudaStream& decode_stream() const { return decode_stream_; }
  std::atomic<std::size_t> memory_bytes{0};
  /// For messages: "12 MiB free", as far as the GPU still says so.
  std::string free_memory() const;

  bool lost() const { return lost_; }
  /// From now on nothing new is given to the GPU. Logs the first reason: "feed gate, lane 2: …".
  void lose(const std::string& reason);
  /// A call has failed for `who` ("feed gate, lane 2"), whose affair alone it is if the GPU still
  /// takes calls: that is logged. Otherwise the GPU is lost.
  void failed(const std::string& who, const CudaError& error);
  /// Jobs that were taken from a GPU which does not end them, and that it has not ended since.
  /// Calls that wait for the GPU would hang.
  std::atomic<int> abandoned_jobs{0};
  /// Their frames, which go when it has ended them all: before, they could not be unregistered.
  std::vector<BufferRef> kept;
  std::mutex kept_mutex;  ///< held where a job is taken, and where either of the two changes

  const std::string name;  ///< "cuda:N"
  EngineMeters busy;

  // Of the completion thread.
  DeviceClock clock;
  /// Books a stretch of work of a lane; returns its length. A copy's event comes while the copy
  /// still queues behind another lane's: it begins when the engine's last one ended.
  std::chrono::nanoseconds account(Engine engine, DeviceClock::Clock::time_point from,
                                   DeviceClock::Clock::time_point to, EngineMeters& lane);

 private:
  const int ordinal_;
  CudaStream upload_stream_;
  CudaStream memory_stream_;
  CudaStream download_stream_;
  CudaStream decode_stream_;
  CudaStream kernel_stream_;
  std::atomic<bool> lost_{false};
  std::array<DeviceClock::Clock::time_point, kEngineNames.size()> last_end_{};
};

}  // namespace framelane
