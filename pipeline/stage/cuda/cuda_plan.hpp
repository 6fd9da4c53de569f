#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/cuda/picture_mask.hpp"
#include "pipeline/frames/frame_job.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"

namespace framelane {

/// An image in a GPU's memory. Its pitches are aligned like those of pool images.
struct DeviceImage {
  DeviceImage(CudaContext& context, PixelFormat format, int width, int height);
  /// A view of this image whose rows go top down or bottom up as those of `host` do.
  ImageView laid_out_as(const ConstImageView& host) const;

  ImageView image;
  DeviceMemory memory;
};

/// The events of a range of a frame's rows, which is converted and copied back while the next range
/// is copied up.
struct CudaSlice {
  explicit CudaSlice(bool last)
      : uploaded(last ? CudaEvent::Kind::kTime : CudaEvent::Kind::kOrder) {}

  CudaEvent uploaded;
  CudaEvent kernel_begin{CudaEvent::Kind::kTime};
  CudaEvent kernel_end{CudaEvent::Kind::kTime};  ///< also where the copy back begins
  CudaEvent done{CudaEvent::Kind::kTime};
};

/// The device memory of one lane: a frame and its conversions.
struct LaneImages {
  LaneImages(CudaContext& context, std::span<const Conversion> conversions, FrameMemory memory,
             std::span<const FrameMemory> target_memory = {});

  std::optional<DeviceImage> source;  ///< empty: frames are on the device already
  /// Empty: identity, the source's own bytes; or jobs bring a target in device memory.
  std::vector<std::optional<DeviceImage>> targets;
};

/// The constants of kernels in the GPU's memory, for work that waits for memory_stream().
struct Constants {
  /// Throws CudaError. The driver may wait until it has read what does not fit into its own buffer.
  template <typename Kernels>  // CudaConverter or CudaMask
  Constants(CudaContext& context, const Kernels& kernels)
      : Constants(context, kernels.constant_bytes()) {
    kernels.write_constants(numbers.data());
    copy_up(context.memory_stream());
  }

  std::vector<std::uint8_t> numbers;  ///< stays, since it may be read later
  DeviceMemory memory;

 private:
  Constants(CudaContext& context, std::size_t bytes);
  void copy_up(StreamRef stream) const;
};

/// Covers sources in the GPU's memory.
struct DeviceMask {
  /// Allocates and loads the kernels. Throws CudaError.
  DeviceMask(CudaContext& context, const PictureMask& mask);
  /// Throws CudaError: the picture may be as it was.
  void enqueue(const ImageView& picture, StreamRef kernels_stream) const;

  CudaMask kernels;
  Constants constants;
};

/// Jobs that a lane has on the GPU at once: while one is copied down, the next is copied up into
/// the same memory.
inline constexpr std::size_t kJobsInLane = 2;

/// Counts the luma of a place's jobs. The counts in the GPU's memory only grow, and a frame's
/// counts are what they grew by (modulo 2^32), so that nothing has to be cleared between frames.
struct LumaCounts {
  explicit LumaCounts(CudaContext& context);
  /// To be called before kernels that count are queued on `stream`. Clears the counts the first
  /// time.
  void prepare(StreamRef stream);
  /// Queues a copy of the counts to `side_data`, which lies behind a target's pixels in host
  /// memory.
  void copy_to(std::uint8_t* side_data, StreamRef stream) const;
  /// What was counted since the last call, from the copy that has arrived in `side_data`.
  LumaHistogram take(const std::uint8_t* side_data);

  std::uint32_t* counts() const { return reinterpret_cast<std::uint32_t*>(memory.data()); }

  DeviceMemory memory;
  LumaHistogram before;
  bool cleared = false;
};

/// An overlay whose bytes are in the GPU's memory, for kernels that are queued after await_copy().
class DeviceOverlay {
 public:
  /// Allocates. Throws CudaError.
  DeviceOverlay(CudaContext& context, std::shared_ptr<const Overlay> overlay)
      : overlay_(std::move(overlay)),
        stream_(context.memory_stream()),
        memory_(context.allocate(overlay_->bytes().size())) {}
  /// Waits until the copy is done.
  ~DeviceOverlay() {
    if (copies_) cudaStreamSynchronize(stream_.get());
  }
  DeviceOverlay(const DeviceOverlay&) = delete;
  DeviceOverlay& operator=(const DeviceOverlay&) = delete;

  /// Queues the copy of the bytes, which may block until the driver has read them. Throws
  /// CudaError.
  void copy_up();
  /// Has the kernels' stream wait for the copy, the first time. Behind the copy gate. Throws
  /// CudaError.
  void await_copy(StreamRef kernels_stream);

  const std::shared_ptr<const Overlay>& overlay() const { return overlay_; }
  const std::uint8_t* bytes() const { return memory_.data(); }

 private:
  const std::shared_ptr<const Overlay> overlay_;
  const StreamRef stream_;
  const DeviceMemory memory_;
  const CudaEvent copied_{CudaEvent::Kind::kOrder};
  bool copies_ = false;
  bool awaited_ = false;
};
/// What one target gets drawn on it, in this order.
using DeviceOverlays = std::vector<std::shared_ptr<DeviceOverlay>>;

/// What one job in a lane needs: the lane's memory, and events for each step of the work.
struct LaneWork {
  LaneWork(std::shared_ptr<const LaneImages> lane_images, int slice_count);
  const CudaEvent& converted() const { return slices.back().kernel_end; }
  const CudaEvent& done() const { return slices.back().done; }

  std::shared_ptr<const LaneImages> images;
  CudaEvent begin{
      CudaEvent::Kind::kTime};  ///< the upload begins or, without one, the frame is there
  std::vector<CudaSlice> slices;
  std::optional<LumaCounts> luma;  ///< the first target's, if jobs are analysed
  /// By target: what the last job of this place was given, which the GPU may still read. Null:
  /// nothing.
  std::vector<std::shared_ptr<const DeviceOverlays>> overlays;
};

/// The rows at which an upload is cut; the last is the height. `slices`: see Device::make_stage.
std::vector<int> slice_ends(PixelFormat format, int width, int height, std::optional<int> slices);

/// Conversions prepared for one feed's lanes. When it is destroyed, the GPU must be done with its
/// memory and events.
struct CudaPlan : Plan {
  /// `cpu_plan`: the same conversions, for jobs that the GPU did not do; null for frames in the
  /// GPU's memory, which nothing else can read.
  explicit CudaPlan(PlanRef cpu_plan) : on_cpu(std::move(cpu_plan)) {}
  ~CudaPlan() override {
    if (context != nullptr) context->try_make_current();
  }
  /// Allocates for `lane_count` lanes and loads the kernels; does nothing if nothing is to be
  /// converted. Does not wait for jobs: those that are queued from now on wait for it. After a
  /// CudaError the plan can still be used on the CPU.
  /// `source_mask`: null: no job masks.
  void allocate(std::shared_ptr<CudaContext> gpu, std::span<const Conversion> conversions,
                FrameMemory memory, bool analyse, std::span<const FrameMemory> targets,
                const PictureMask* source_mask, std::size_t lane_count, std::optional<int> slices);

  const PlanRef on_cpu;
  std::shared_ptr<CudaContext> context;  ///< outlives what lies in its memory, below
  std::vector<std::unique_ptr<const CudaConverter>> converters;  ///< null: identity
  std::vector<std::optional<int>> scaled_heights;  ///< of targets of another size than the source
  /// The converters' constants; empty: it has none.
  std::vector<std::optional<Constants>> constants;
  std::optional<DeviceMask> mask;  ///< of the source
  std::vector<int> slice_ends;     ///< of a frame that is sliced
  bool downloads = false;          ///< something is copied down
  /// By target: the overlays of the last frame that was drawn on. Frames of all lanes share them,
  /// so that each is copied up once.
  struct PresentOverlays {
    struct Target {
      std::shared_ptr<const Overlays> overlays;
      std::shared_ptr<const DeviceOverlays> on_gpu;  ///< the same, without those that draw nothing
    };
    std::mutex mutex;  ///< held while they are copied up
    std::vector<Target> by_target;
  };
  std::unique_ptr<PresentOverlays> overlays;
  /// One for each lane, then again one for each lane; empty: jobs run on the CPU.
  std::vector<std::unique_ptr<LaneWork>> works;
};

/// Bytes of GPU memory that a plan takes.
std::size_t plan_bytes(std::span<const Conversion> conversions, FrameMemory memory,
                       std::size_t lane_count, std::span<const FrameMemory> targets = {});

}  // namespace framelane
