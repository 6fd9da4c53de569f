#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/luma_histogram.hpp"
#include "kernels/overlay.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

struct EncodePlan;

/// The conversions of one input format, prepared by a stage: one for each encode that takes frames,
/// except where the frame bypasses the stage. The last job that uses it destroys it.
class Plan {
 public:
  virtual ~Plan() = default;
};
using PlanRef = std::shared_ptr<const Plan>;

/// What one encode gets from a job.
struct JobOutput {
  /// False: the encode takes the input itself (bypass), or nothing, if it has no `encode_plan`.
  bool converts = false;
  /// The converted frame, if it converts. Belongs to the stage until Stage::wait has returned
  /// kReady. The first output of an analysed job has room for a LumaHistogram in its `side_data`.
  /// Empty if nothing is wanted, whatever the plan says. In device memory it is laid out as the
  /// encoder wants it, and becomes empty if the GPU does not do the job.
  PooledImage target;
  FrameMemory memory = FrameMemory::kHost;  ///< of the target
  BufferRef side_buffer;                    ///< owns the side data of a target in device memory
  /// What is drawn on the target; null: nothing. Only if the plan's conversion is `overlaid`.
  std::shared_ptr<const Overlays> overlays;
  FrameTicket ticket;
  /// A plan other than the last job's: a new encoder. Null: the last one is closed. If there is a
  /// frame, none can be opened for it, and its ticket is closed already.
  std::shared_ptr<EncodePlan> encode_plan;
};

/// One frame and what is made of it: the input, the prepared plan, and an output for each encode
/// that takes frames. A job can run again, on another device, as long as its input is in host
/// memory. A job whose input has no buffer has no frame and no tickets: it only brings plans.
struct FrameJob {
  std::uint64_t sequence = 0;
  InputFrame input;
  PlanRef plan;
  std::vector<JobOutput> outputs;
  /// The plan's mask is to cover the input before anything is made of it. The input itself must not
  /// be shown.
  bool masks = false;
  bool analyse = false;  ///< the luma of the first output's frame is to be counted
  /// Its counts. The stage writes them if the first output converts, until Stage::wait has returned
  /// kReady. The encode counts a frame that bypasses the stage.
  LumaHistogram luma;

  // Only for the stage that runs the job.
  std::atomic<bool> converted{false};
  std::atomic<bool> on_fallback{false};  ///< the device was lost: the job runs on the CPU instead
  std::atomic<bool> device_lost{false};  ///< the input was lost with it: no target gets complete
  FrameJob* next_in_lane = nullptr;
};

}  // namespace framelane
