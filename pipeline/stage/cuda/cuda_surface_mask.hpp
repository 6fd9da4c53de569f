#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/picture_mask.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"

namespace framelane {

/// A mask in a GPU's memory, for decoded frames there.
class CudaSurfaceMask {
 public:
  /// Throws CudaError.
  CudaSurfaceMask(std::shared_ptr<CudaContext> context, std::shared_ptr<const PictureMask> mask);
  /// Waits until the frames that were given to apply are covered.
  ~CudaSurfaceMask();
  CudaSurfaceMask(const CudaSurfaceMask&) = delete;
  CudaSurfaceMask& operator=(const CudaSurfaceMask&) = delete;

  const std::shared_ptr<const PictureMask>& mask() const { return mask_; }
  /// Queues the covering of a frame on CudaContext::decode_stream(). Throws CudaError: the frame
  /// may be as it was.
  void apply(const ImageView& frame);

 private:
  const std::shared_ptr<CudaContext> context_;
  const std::shared_ptr<const PictureMask> mask_;
  const CudaMask kernels_;
  std::vector<std::uint8_t> numbers_;  // stays, since it may be read later
  const DeviceMemory constants_;
  const DeviceMemory scratch_;
};

}  // namespace framelane
