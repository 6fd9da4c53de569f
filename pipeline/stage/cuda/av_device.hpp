#pragma once

#include <memory>
#include <string>

#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"

namespace framelane {

// An AVHWDeviceContext over the CUDA context that the lanes work in, so that frames can stay on the
// GPU. The result, and every frame that FFmpeg makes with it, share the ownership of `gpu`. Null,
// with the reason in `why`, if FFmpeg or the driver cannot. Throws CudaError.

/// For a decoder. A frame is complete when everything queued on gpu->decode_stream() is done.
BufferRef make_decode_context(std::shared_ptr<CudaContext> gpu, std::string& why);
/// For one encoder, with a stream of its own: NVENC reads a frame after what is queued there.
BufferRef make_encode_context(std::shared_ptr<CudaContext> gpu, std::string& why);

}  // namespace framelane
