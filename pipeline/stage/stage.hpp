#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "kernels/conversion.hpp"
#include "pipeline/frames/frame_job.hpp"

namespace framelane {

using Deadline = std::chrono::steady_clock::time_point;

/// Converts frames asynchronously and in parallel, on one device, for one feed. Implementations
/// give the reference's bytes, exactly.
class Stage {
 public:
  virtual ~Stage() = default;

  /// What FFmpeg's decoders need to leave frames in the memory of the stage's GPU (a reference to
  /// an AVHWDeviceContext). Null where frames have to be in host memory: `why` says why the GPU
  /// does not do, and nothing where there is none. Source thread.
  virtual BufferRef decode_context(std::string& /*why*/) { return {}; }
  /// Whether jobs' inputs may be in device memory; once false it stays so. Any thread.
  virtual bool takes_device_frames() { return false; }

  /// Prepares conversions for frames of one format in one memory. An identity gives a bypass, but
  /// from device memory: that is copied to the target. Allocates whatever running needs. Requires
  /// !why_unsupported for each. `analyse`: jobs also get the luma histogram of their first target,
  /// which then has_luma, unless that is a bypass. Source thread.
  virtual PlanRef prepare(std::span<const Conversion> conversions,
                          FrameMemory memory = FrameMemory::kHost, bool analyse = false) = 0;

  /// Starts a job whose targets are allocated. Waits for no conversion; a GPU that hangs may hold
  /// it up all the same. The job stays where it is until wait has said kReady or kDeviceLost (or
  /// the stage is gone). Source thread.
  virtual void submit(FrameJob& job) = 0;

  /// kDeviceLost: the frame was lost with the device that held it, and the targets hold nothing.
  enum class Wait { kReady, kStopped, kLate, kDeviceLost };
  /// Waits until every target of a submitted job is complete. Any number of threads.
  virtual Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) = 0;
};

}  // namespace framelane
