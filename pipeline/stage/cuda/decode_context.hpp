#pragma once

#include <memory>
#include <string>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"

namespace framelane {

/// An AVHWDeviceContext over the CUDA context that everything else here works in, so that what
/// FFmpeg decodes on the GPU can be converted where it is. Its frames are there when what is queued
/// on gpu->decode_stream() is done. It and every frame own a part of `gpu`. Null, with the reason
/// in `why`, where FFmpeg or the driver cannot. Throws CudaError.
BufferRef make_decode_context(std::shared_ptr<CudaContext> gpu, std::string& why);

}  // namespace framelane
