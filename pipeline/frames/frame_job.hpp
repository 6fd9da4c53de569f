#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/luma_histogram.hpp"
#include "pipeline/frames/frame_pool.hpp"
#include "pipeline/frames/input_frame.hpp"
#include "pipeline/measure/feed_stats.hpp"

namespace framelane {

struct EncodePlan;

/// The conversions of one input format, prepared by a stage: one per encode that takes frames,
/// where the frame does not bypass. Dies with its last job.
class Plan {
 public:
  virtual ~Plan() = default;
};
using PlanRef = std::shared_ptr<const Plan>;

/// What one encode gets from a job.
struct JobOutput {
  bool converts = false;  ///< else the encode takes the input itself (bypass)
  /// Where it converts; the stage's until wait has said kReady. The first one of a job that is
  /// analysed has room for a LumaHistogram in its `extra`.
  PooledImage target;
  FrameTicket ticket;
  std::shared_ptr<EncodePlan> encode_plan;  ///< what the encoder was, or is to be, opened for
};

/// One frame's way through the stage: input, prepared plan, one output per encode that takes
/// frames. As long as the input is held, and in host memory, it can be run again on another device.
struct FrameJob {
  std::uint64_t sequence = 0;
  InputFrame input;
  PlanRef plan;
  std::vector<JobOutput> outputs;
  bool analyse = false;  ///< the luma of the first output's frame is to be counted
  /// Where the first output converts, the stage counts, by the plan, until wait has said kReady; of
  /// a bypass, the encode.
  LumaHistogram luma;

  // Of the stage that runs the job; nobody else touches them.
  std::atomic<bool> converted{false};
  std::atomic<bool> on_fallback{false};  ///< its device was lost: it runs on the CPU instead
  std::atomic<bool> device_lost{false};  ///< and with it the input: no target will be complete
  FrameJob* next_in_lane = nullptr;
};

}  // namespace framelane
