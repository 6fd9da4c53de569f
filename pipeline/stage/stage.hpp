#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "kernels/conversion.hpp"
#include "kernels/picture_mask.hpp"
#include "pipeline/frames/frame_job.hpp"

namespace framelane {

using Deadline = std::chrono::steady_clock::time_point;

/// Converts frames asynchronously and in parallel, on one device, for one feed. All implementations
/// give the bytes of kernels/reference.hpp.
class Stage {
 public:
  virtual ~Stage() = default;

  /// A reference to an AVHWDeviceContext, with which FFmpeg's decoders leave frames in the memory
  /// of the stage's GPU. Null if frames have to be in host memory: then `why` says why the GPU
  /// cannot decode, or is unchanged if there is no GPU. Source thread.
  virtual BufferRef decode_context(std::string& /*why*/) { return {}; }
  /// The same for one encoder that takes frames in the memory of the stage's GPU. Null: it takes
  /// them from host memory; `why` says why. Source thread.
  virtual BufferRef encode_context(std::string& /*why*/) { return {}; }
  /// True if jobs' inputs and targets may be in device memory. Once false, it stays false. Any
  /// thread.
  virtual bool takes_device_frames() { return false; }
  /// As takes_device_frames, but asks the GPU, because something that works on it has failed:
  /// `what`, "encode main: …". Any thread.
  virtual bool still_takes_device_frames(const std::string& /*what*/) { return false; }

  /// Prepares conversions for frames of one format, all in the same kind of memory, and allocates
  /// whatever the jobs need. What is_bypass is bypassed, unless the source or the target is in
  /// device memory: then it is a copy. `analyse`: the stage also counts the luma of each job's
  /// first target, before overlays, unless that is bypassed. `targets`: the memory of each
  /// conversion's targets; empty: all are in host memory. `mask`: what jobs that `masks` are
  /// covered with, of the frames' size and format; they must not have a bypass. Requires
  /// !why_unsupported for each conversion, and has_luma of the first target if `analyse`. Source
  /// thread.
  virtual PlanRef prepare(std::span<const Conversion> conversions,
                          FrameMemory memory = FrameMemory::kHost, bool analyse = false,
                          std::span<const FrameMemory> targets = {},
                          std::shared_ptr<const PictureMask> mask = nullptr) = 0;

  /// Starts a job, whose targets are allocated. Does not wait for conversions, but may block if a
  /// GPU hangs. The job must not be moved or destroyed before wait has returned kReady or
  /// kDeviceLost, or the stage is destroyed. Source thread.
  virtual void submit(FrameJob& job) = 0;

  /// kReady: every target is complete; of a job that the GPU did not do, only those in host memory,
  /// and the others are empty, as is one that there was no memory for. All are empty if there was
  /// no memory to mask the frame. kStopped:
  /// `stop` was requested. kLate: the deadline has passed. kDeviceLost: the frame was in the memory
  /// of a device that is lost, and no target is complete.
  enum class Wait { kReady, kStopped, kLate, kDeviceLost };
  /// Blocks until a submitted job is ready or lost. Any thread, several at once too.
  virtual Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) = 0;
};

}  // namespace framelane
