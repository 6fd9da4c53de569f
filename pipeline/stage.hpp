#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>

#include "kernels/conversion.hpp"
#include "pipeline/frame_job.hpp"

namespace framelane {

using Deadline = std::chrono::steady_clock::time_point;

/// Converts frames asynchronously and in parallel, on one device, for one feed. Implementations
/// give the reference's bytes, exactly.
class Stage {
 public:
  virtual ~Stage() = default;

  /// Prepares conversions for frames of one format; an identity gives a bypass. Allocates whatever
  /// running needs. Requires !why_unsupported for each. Source thread.
  virtual PlanRef prepare(std::span<const Conversion> conversions) = 0;

  /// Starts a job whose targets are allocated. Never blocks. The job stays where it is until wait
  /// has said kReady (or the stage is gone). Source thread.
  virtual void submit(FrameJob& job) = 0;

  enum class Wait { kReady, kStopped, kLate };
  /// Waits until every target of a submitted job is complete. Any number of threads.
  virtual Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) = 0;
};

}  // namespace framelane
