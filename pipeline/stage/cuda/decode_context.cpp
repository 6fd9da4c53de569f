#include "pipeline/stage/cuda/decode_context.hpp"

extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>
}

#include "pipeline/av/av_error.hpp"
#include "pipeline/av/av_log_capture.hpp"

namespace framelane {
namespace {

/// The driver's context of the calling thread's current device, or null. The runtime API has no
/// call for it, so the driver's own is looked up.
CUcontext current_context() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  cuda::check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000,
                                               cudaEnableDefault, &found),
              "cudaGetDriverEntryPointByVersion");
#else
  cuda::check(cudaGetDriverEntryPoint("cuCtxGetCurrent", &function, cudaEnableDefault, &found),
              "cudaGetDriverEntryPoint");
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr) return nullptr;
  CUcontext context = nullptr;
  const auto get = reinterpret_cast<CUresult (*)(CUcontext*)>(function);
  return get(&context) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace

BufferRef make_decode_context(std::shared_ptr<CudaContext> gpu, std::string& why) {
  gpu->make_current();
  const CUcontext context = current_context();
  if (context == nullptr) {
    why = "the driver shows no context of " + gpu->name();
    return {};
  }
  BufferRef result = BufferRef::adopt(av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA));
  if (!result) {
    why = "this FFmpeg is built without CUDA";
    return {};
  }
  auto& device = *reinterpret_cast<AVHWDeviceContext*>(result.get()->data);
  auto& cuda = *static_cast<AVCUDADeviceContext*>(device.hwctx);
  cuda.cuda_ctx = context;
  cuda.stream = gpu->decode_stream().get();
  device.user_opaque = new std::shared_ptr<CudaContext>(std::move(gpu));
  device.free = [](AVHWDeviceContext* owner) {
    delete static_cast<std::shared_ptr<CudaContext>*>(owner->user_opaque);
  };
  const AvLogCapture log;
  if (const int error = av_hwdevice_ctx_init(result.get()); error < 0) {
    why = "FFmpeg cannot use CUDA: " + log.reason(av_error_text(error));
    return {};
  }
  return result;
}

}  // namespace framelane
