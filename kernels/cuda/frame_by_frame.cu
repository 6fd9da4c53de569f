#include "kernels/cuda/frame_by_frame.hpp"

#include "kernels/cuda/luma_count.hpp"
#include "kernels/cuda/samples.cuh"

namespace framelane {

cudaError_t FrameByFrame::enqueue(std::span<const CudaFrame> frames, int row_begin, int row_end,
                                  cudaStream_t stream) const {
  for (const CudaFrame& frame : frames) {
    const bool aligned =
        cuda::is_aligned(frame.source, alignment_) && cuda::is_aligned(frame.target, alignment_);
    if (!aligned) {
      const cudaError_t error = otherwise_->enqueue({&frame, 1}, row_begin, row_end, stream);
      if (error != cudaSuccess) return error;
      continue;
    }
    cudaError_t error = enqueue_kernel(frame, row_begin, row_end, stream);
    if (error == cudaSuccess && frame.luma_counts != nullptr) {
      error =
          enqueue_luma_count(as_const(frame.target), row_begin, row_end, frame.luma_counts, stream);
    }
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t FrameByFrame::load(bool counts_luma) const {
  cudaError_t error = load_kernel();
  if (error == cudaSuccess && otherwise_ != nullptr) error = otherwise_->load(counts_luma);
  return error == cudaSuccess && counts_luma ? load_luma_count() : error;
}

}  // namespace framelane
