#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/engine_meters.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"
#include "pipeline/stage/cuda/device_clock.hpp"
#include "pipeline/stage/cuda/device_memory.hpp"

namespace framelane {

struct FrameJob;
class CudaContext;

/// The right to queue jobs, and the three streams that jobs are queued in. One thread at a time has
/// it, so that jobs are in the same order in all three streams. The views of the streams must not
/// be used once it has ended.
class CopyGate {
 public:
  StreamRef uploads() const;
  StreamRef kernels() const;
  StreamRef downloads() const;

 private:
  friend class CudaContext;
  explicit CopyGate(CudaContext& context);
  const CudaContext* context_;
  std::unique_lock<std::mutex> lock_;
};

/// What the lanes, plans and jobs of one GPU share: its streams, memory, meters, and what is known
/// of its health. Everything that the GPU may still use shares the ownership of the context, which
/// therefore outlives a device or a stage that had to leave work behind. Any thread may call,
/// except where the completion thread is named.
class CudaContext {
 public:
  /// Makes GPU `ordinal` the current one of the calling thread. Throws CudaError.
  explicit CudaContext(int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const std::string& name() const { return name_; }  ///< "cuda:N"

  /// Makes this GPU the current one of the calling thread: to be done before other CUDA calls.
  /// Throws CudaError.
  void make_current() const;
  void try_make_current() const noexcept { cudaSetDevice(ordinal_); }

  // Queueing. All uploads of all feeds go through one stream and all downloads through another, so
  // that they queue: copies that share the bus are slower. All kernels have one stream too, because
  // streams hold each other up when there are more of them than the GPU has hardware queues.

  /// Blocks while another thread queues a job, and so for as long as a GPU that hangs blocks that
  /// thread's CUDA calls.
  [[nodiscard]] CopyGate enter_copy_gate() { return CopyGate(*this); }
  /// Blocks until everything that is queued behind the gate is done, or the GPU answers with an
  /// error, which is not reported. Does not need the gate.
  void drain_jobs() const noexcept;
  /// The stream in which NVDEC's pictures become frames, for all feeds. A frame is complete when
  /// everything is done that is queued here at the time the decoder returns it.
  StreamRef decode_stream() const { return decode_stream_; }

  // GPU memory. It is allocated and freed in the order of memory_stream(), and may be used by work
  // that waits for that stream.

  /// Throws CudaError. The memory must not outlive the context.
  DeviceMemory allocate(std::size_t bytes) { return {memory_, bytes}; }
  StreamRef memory_stream() const { return memory_.stream(); }
  /// Lets jobs use all memory that has been allocated so far: what comes first in a job and is
  /// queued from now on, an upload (kHost) or a decoded frame (kDevice), waits for it on the GPU.
  /// May block as enter_copy_gate does. Throws CudaError.
  void publish_allocations(FrameMemory frames);
  /// Bytes that are allocated now.
  std::size_t memory_bytes() const { return memory_.bytes(); }
  /// For messages: "12 MiB free", or that it is unknown.
  std::string free_memory() const;

  // Health.

  bool lost() const { return lost_; }
  /// How a GPU was lost. kStuckCall: a call does not return, so others may not return either.
  enum class Loss { kOther, kStuckCall };
  /// From now on nothing new is given to the GPU. Logs the first reason: "feed gate, lane 2: …".
  void lose(const std::string& reason, Loss loss);
  /// True if a call that waits for the GPU may not return.
  bool hangs() const { return stuck_call_ || has_abandoned_jobs(); }
  /// Loses the GPU, for this reason, if it takes no calls any more.
  void lose_if_broken(const std::string& reason);
  /// A call has failed for `who` ("feed gate, lane 2"). If the GPU still takes calls, only `who` is
  /// affected, which is logged; otherwise the GPU is lost.
  void failed(const std::string& who, const CudaError& error);

  // Abandoned jobs were taken from a GPU that does not end them. It may still read and write their
  // frames, and CUDA calls that wait for the GPU would hang.

  /// Takes the job out of `job` and holds its frames until the GPU has ended all abandoned jobs.
  /// `detach` is called with the job before abandoned_job_ended() takes effect for it. Returns null
  /// if `job` is null: the job has ended, or was taken before.
  FrameJob* abandon_job(std::atomic<FrameJob*>& job, void (*detach)(FrameJob&));
  /// The GPU has ended an abandoned job after all. May free the frames that are held, which waits
  /// for the GPU.
  void abandoned_job_ended();
  /// True while the GPU has abandoned jobs.
  bool has_abandoned_jobs() const { return abandoned_jobs_ > 0; }
  /// Holds a frame until the GPU has ended all abandoned jobs; does nothing if there are none.
  void hold_until_idle(const BufferRef& frame);

  // Meters.

  /// The work of all feeds.
  const EngineMeters& busy() const { return busy_; }
  /// Completion thread only.
  DeviceClock& clock() { return clock_; }
  /// Books a stretch of a lane's work on a frame in the lane's and the GPU's meters, and in the
  /// lane's trace; returns its length. The stretch begins no earlier than the last one of the same
  /// engine ended, because a copy's first event comes while the copy still queues behind another
  /// lane's. Completion thread only.
  std::chrono::nanoseconds account(Engine engine, DeviceClock::Clock::time_point from,
                                   DeviceClock::Clock::time_point to, LaneStats& lane,
                                   std::int64_t frame);

 private:
  friend class CopyGate;

  const std::string name_;
  std::mutex held_mutex_;               // held while abandoned_jobs_ or held_frames_ changes
  std::atomic<int> abandoned_jobs_{0};  // changed under held_mutex_, read without it
  std::vector<BufferRef> held_frames_;  // to be freed later: freeing a frame waits for the GPU
  EngineMeters busy_;
  DeviceClock clock_;  // before the streams below: tests know the order in which streams are made
  const int ordinal_;
  std::mutex copy_gate_;
  CudaStream upload_stream_;
  CudaStream memory_stream_;
  CudaStream download_stream_;
  CudaStream decode_stream_;
  CudaStream kernel_stream_;
  DevicePool memory_{memory_stream_};
  std::atomic<bool> lost_{false};
  std::atomic<bool> stuck_call_{false};
  std::array<DeviceClock::Clock::time_point, kEngineNames.size()> last_end_{};
};

inline StreamRef CopyGate::uploads() const { return context_->upload_stream_; }
inline StreamRef CopyGate::kernels() const { return context_->kernel_stream_; }
inline StreamRef CopyGate::downloads() const { return context_->download_stream_; }
inline CopyGate::CopyGate(CudaContext& context) : context_(&context), lock_(context.copy_gate_) {}

}  // namespace framelane
