#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "kernels/cuda/cuda_converter.hpp"

namespace framelane {

/// A converter that launches its kernel for each frame, and counts luma in a launch of its own.
class FrameByFrame : public CudaConverter {
 public:
  using CudaConverter::enqueue;
  cudaError_t enqueue(std::span<const CudaFrame> frames, int row_begin, int row_end,
                      cudaStream_t stream) const final;
  cudaError_t load(bool counts_luma) const final;

 protected:
  /// For frames of any alignment.
  FrameByFrame() = default;
  /// For frames whose rows are aligned to so many bytes. `otherwise` converts the others.
  FrameByFrame(std::uintptr_t alignment, std::unique_ptr<const CudaConverter> otherwise)
      : alignment_(alignment), otherwise_(std::move(otherwise)) {}

 private:
  /// As enqueue and load, of the kernel alone.
  virtual cudaError_t enqueue_kernel(const CudaFrame& frame, int row_begin, int row_end,
                                     cudaStream_t stream) const = 0;
  virtual cudaError_t load_kernel() const = 0;

  const std::uintptr_t alignment_ = 1;
  const std::unique_ptr<const CudaConverter> otherwise_;
};

}  // namespace framelane
