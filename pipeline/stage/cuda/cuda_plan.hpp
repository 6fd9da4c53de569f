#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/cuda_converter.hpp"
#include "pipeline/frames/frame_job.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"

namespace framelane {

/// An image in a GPU's memory, rows on the same steps as those of pool images.
struct DeviceImage {
  DeviceImage(CudaContext& context, PixelFormat format, int width, int height);
  /// The view whose rows lie in memory as those of `host` do, top down or bottom up.
  ImageView laid_out_as(const ConstImageView& host) const;

  ImageView image;
  DeviceMemory memory;
};

/// A range of a frame's rows that is converted and copied back while the next is copied up.
struct CudaSlice {
  explicit CudaSlice(bool last)
      : uploaded(last ? CudaEvent::Kind::kTime : CudaEvent::Kind::kOrder),
        done(last ? CudaEvent::Kind::kDone : CudaEvent::Kind::kTime) {}

  CudaEvent uploaded;
  CudaEvent kernel_begin{CudaEvent::Kind::kTime};
  CudaEvent kernel_end{CudaEvent::Kind::kTime};  ///< and the begin of the copy back
  CudaEvent done;
};

/// Where a lane's frame and its conversions lie.
struct LaneImages {
  LaneImages(CudaContext& context, std::span<const Conversion> conversions, FrameMemory memory);

  std::optional<DeviceImage> source;                ///< none: frames are on the device already
  std::vector<std::optional<DeviceImage>> targets;  ///< none: the source's bytes
};

/// Jobs that a lane has on the GPU at once: while one comes down the next goes up, into the same
/// memory.
inline constexpr std::size_t kJobsInLane = 2;

/// Where a job's luma is counted. The counts in the GPU's memory only grow, and a frame's are what
/// they grew by (modulo 2^32): so nothing has to be set to zero between frames.
struct LumaCounts {
  explicit LumaCounts(CudaContext& context);
  /// Before kernels that are queued on `stream` may count: clears the counts, the first time.
  void prepare(const CudaStream& stream);
  /// Queues the copy of the counts to `extra`, a target's, in host memory.
  void copy_to(std::uint8_t* extra, const CudaStream& stream) const;
  /// What was counted since the last call. `extra`: where the copy has arrived.
  LumaHistogram take(const std::uint8_t* extra);

  std::uint32_t* counts() const { return reinterpret_cast<std::uint32_t*>(memory.data()); }

  DeviceMemory memory;
  LumaHistogram before;
  bool cleared = false;
};

/// What one job in a lane needs: the lane's memory, and when what happened.
struct LaneWork {
  LaneWork(std::shared_ptr<const LaneImages> lane_images, int slice_count);
  const CudaEvent& converted() const { return slices.back().kernel_end; }
  const CudaEvent& done() const { return slices.back().done; }

  std::shared_ptr<const LaneImages> images;
  CudaEvent begin{CudaEvent::Kind::kTime};  ///< of the upload; without one, the frame is there
  std::vector<CudaSlice> slices;
  std::optional<LumaCounts> luma;  ///< of the first target, where jobs are analysed
};

/// Where slices end. An upload is cut at these rows, the last being the height.
std::vector<int> slice_ends(PixelFormat format, int width, int height, std::optional<int> slices);

/// Conversions prepared for one feed's lanes. Its memory and events must be out of the GPU's hands
/// when it goes.
struct CudaPlan : Plan {
  /// `on_cpu`: the same conversions, for a job that the GPU did not do; null for frames in the
  /// GPU's memory, which nothing else can read.
  explicit CudaPlan(PlanRef cpu_plan) : on_cpu(std::move(cpu_plan)) {}
  ~CudaPlan() override {
    if (context != nullptr) context->try_make_current();
  }
  /// Allocates for that many lanes and loads the kernels; with nothing to do, nothing. Does not
  /// wait for the GPU: uploads and frames that are queued from now on do. Throws CudaError; then
  /// the plan still serves on the CPU.
  void allocate(std::shared_ptr<CudaContext> gpu, std::span<const Conversion> conversions,
                FrameMemory memory, bool analyse, std::size_t lane_count,
                std::optional<int> slices);

  const PlanRef on_cpu;
  std::shared_ptr<CudaContext> context;                          // before what lies in its memory
  std::vector<std::unique_ptr<const CudaConverter>> converters;  ///< null: identity
  std::vector<int> slice_ends;                                   ///< of a frame that is sliced
  /// For lane 0, 1, … and again for lane 0, 1, …; empty: to be run on the CPU.
  std::vector<std::unique_ptr<LaneWork>> works;
};

/// Bytes of GPU memory that a plan takes.
std::size_t plan_bytes(std::span<const Conversion> conversions, FrameMemory memory,
                       std::size_t lane_count);

}  // namespace framelane
