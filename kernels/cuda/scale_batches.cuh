#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/cuda/cuda_converter.hpp"
#include "kernels/cuda/scale.cuh"
#include "kernels/scaled_reference.hpp"

namespace framelane {

/// A converter that scales several frames in a launch, and has a launch for each frame that is not
/// filled: for the background, and for chroma that is neutral. Luma is counted in a launch of its
/// own.
class ScaleInBatches : public CudaConverter {
 public:
  using CudaConverter::enqueue;
  cudaError_t enqueue(std::span<const CudaFrame> frames, int row_begin, int row_end,
                      cudaStream_t stream) const final;
  cudaError_t load(bool counts_luma) const final;
  std::size_t frames_a_launch() const final;

 protected:
  explicit ScaleInBatches(const Conversion& conversion);

  const Conversion& conversion() const { return conversion_; }
  const ScaledSamples& samples() const { return samples_; }
  bool has_chroma() const { return !samples_.terms(1).empty(); }
  /// Where the picture lies in luma and in chroma.
  std::array<cuda::ScalePlace, 2> places() const;

 private:
  /// As enqueue and load, of the picture alone; for at most frames_a_launch() frames.
  virtual cudaError_t enqueue_picture(std::span<const CudaFrame> frames, int row_begin, int row_end,
                                      cudaStream_t stream) const = 0;
  virtual cudaError_t load_kernels() const = 0;

  bool is_filled(const ImageView& target) const;
  cudaError_t enqueue_rest(const CudaFrame& frame, int row_begin, int row_end,
                           cudaStream_t stream) const;

  const Conversion conversion_;
  const std::array<std::uint8_t, 3> background_;
  const ScaledSamples samples_;
};

}  // namespace framelane
