#include "pipeline/stage/cuda/cuda_surface_mask.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace framelane {
namespace {

/// CUDA gives no memory of no size.
DeviceMemory allocate(CudaContext& context, std::size_t bytes) {
  return context.allocate(std::max<std::size_t>(bytes, 1));
}

}  // namespace

CudaSurfaceMask::CudaSurfaceMask(std::shared_ptr<CudaContext> context,
                                 std::shared_ptr<const PictureMask> mask)
    : context_(std::move(context)),
      mask_(std::move(mask)),
      kernels_(*mask_),
      numbers_(kernels_.constant_bytes()),
      constants_(allocate(*context_, kernels_.constant_bytes())),
      scratch_(allocate(*context_, kernels_.scratch_bytes())) {
  kernels_.write_constants(numbers_.data());
  cuda::check(CudaMask::load(), "cudaFuncGetAttributes");
  cuda::check(cudaMemcpyAsync(constants_.data(), numbers_.data(), numbers_.size(),
                              cudaMemcpyHostToDevice, context_->memory_stream().get()),
              "cudaMemcpyAsync");
  context_->publish_allocations(FrameMemory::kDevice);
}

CudaSurfaceMask::~CudaSurfaceMask() {
  context_->try_make_current();
  cuda::report(cudaStreamSynchronize(context_->decode_stream().get()), "cudaStreamSynchronize");
}

void CudaSurfaceMask::apply(const ImageView& frame) {
  cuda::check(
      kernels_.enqueue(frame, constants_.data(), scratch_.data(), context_->decode_stream().get()),
      "cudaLaunchKernel");
}

}  // namespace framelane
