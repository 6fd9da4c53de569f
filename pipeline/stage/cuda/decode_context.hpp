#pragma once

#include <memory>
#include <string>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"

namespace framelane {

/// Makes an AVHWDeviceContext over the CUDA context that the lanes work in, so that frames which
/// FFmpeg decodes on the GPU can be converted where they are. A frame is complete when everything
/// queued on gpu->decode_stream() is done. The result and every frame share the ownership of `gpu`.
/// Null, with the reason in `why`, if FFmpeg or the driver cannot. Throws CudaError.
BufferRef make_decode_context(std::shared_ptr<CudaContext> gpu, std::string& why);

}  // namespace framelane
