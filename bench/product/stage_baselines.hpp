// The usual ways to convert frames on a GPU, beside which the stage is measured. Only with the CUDA
// backend.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "bench/harness/gpu_part.hpp"
#include "bench/harness/pictures.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"

namespace framelane::bench {

/// Copy up, convert, copy back, one frame after the other. One thread; throws CudaError.
class StageBaselines {
 public:
  /// Takes `frames` round and round. They and the context must outlive this.
  StageBaselines(CudaContext& context, const Conversion& convert,
                 std::span<const PooledImage> frames);

  // Each converts one frame, and returns when it is back.

  /// Memory as malloc gives it.
  void pageable_default_stream();
  void pinned_default_stream();
  /// What textbooks show: each part of a frame on a stream of its own.
  void eight_streams();

  void spoil_results();
  /// Which frame was converted last, and where its result is.
  std::size_t frame() const { return frame_; }
  ConstImageView result() const { return result_; }

 private:
  static constexpr int kStreams = 8;

  const ImageView& device_source() const { return images_.source->image; }
  const ImageView& device_target() const { return images_.targets[0]->image; }
  void convert(int begin, int end, cudaStream_t stream) const;
  void default_stream(const ConstImageView& from, const ImageView& to);

  const Conversion convert_;
  const std::unique_ptr<const CudaConverter> converter_;
  const std::span<const PooledImage> frames_;
  FramePool targets_;
  const PooledImage pinned_target_;
  const PlainImage pageable_source_, pageable_target_;
  const LaneImages images_;
  std::size_t frame_ = 0;
  ConstImageView result_;
  Streams streams_{kStreams};  // last, so that it is destroyed first
};

}  // namespace framelane::bench
