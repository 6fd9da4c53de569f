// One picture in a GPU's memory, to be converted over and over there: what `peers` and `reduce`
// time kernels with. Only with the CUDA backend.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/gpu_part.hpp"
#include "bench/harness/pictures.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"

namespace framelane::bench {

/// Copies of one picture, and a target for each: together more memory than the second-level cache
/// holds, so that a kernel finds nothing of its frame there. One thread; throws CudaError.
class GpuFrames {
 public:
  static constexpr int kBatch = 16;  ///< frames in a batch

  /// `constants`: the frames' (CudaFrame::constants); they stay. Returns when they are there.
  GpuFrames(CudaContext& context, const Conversion& conversion, const ConstImageView& picture,
            const std::uint8_t* constants = nullptr);

  std::size_t count() const { return sources_.size(); }
  const DeviceImage& source(std::size_t i) const { return sources_[i]; }
  const DeviceImage& target(std::size_t i) const { return targets_[i]; }
  /// Whether there are batches: of frames up to 1080p. Larger ones are too few for that.
  bool has_batches() const { return small_; }
  /// The kBatch frames from i on. Requires has_batches() and a multiple of kBatch.
  std::span<const CudaFrame> batch(std::size_t i) const { return {&frames_[i], kBatch}; }
  /// The stream on which all work is queued.
  const CudaStream& stream() const { return streams_[0]; }

  /// How many frames are converted in one measurement; a multiple of kBatch.
  int timed() const { return timed_; }
  /// Milliseconds a frame, by the GPU's own clock. `work` queues timed() frames.
  double time_all(const std::function<void()>& work) const;
  /// The same, where `work` queues one frame: from source i to target i.
  double time(const std::function<void(std::size_t)>& work) const;

  void spoil_targets() const;
  /// Waits for it.
  void download(std::size_t i, const ImageView& to) const;
  /// Empty, or where a target first differs from `expected`. Downloads each of them to `to`.
  std::string compare(const ConstImageView& expected, const ImageView& to) const;

 private:
  std::vector<DeviceImage> sources_, targets_;
  std::vector<CudaFrame> frames_;
  bool small_ = false;
  int timed_ = 0;
  CudaEvent begin_{CudaEvent::Kind::kTime}, end_{CudaEvent::Kind::kTime};
  Streams streams_{1};  // last, so that it is destroyed first
};

}  // namespace framelane::bench
