#include "pipeline/stage/cuda/av_device.hpp"

extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/hwcontext_cuda.h>
}

#include <memory>
#include <optional>
#include <utility>

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

/// What an AVHWDeviceContext needs for as long as it lives.
struct Kept {
  explicit Kept(std::shared_ptr<CudaContext> context) : gpu(std::move(context)) {}
  ~Kept() { gpu->try_make_current(); }

  const std::shared_ptr<CudaContext> gpu;
  std::optional<CudaStream> stream;
};

/// Requires that the GPU is current.
BufferRef make_device(std::unique_ptr<Kept> kept, cudaStream_t stream, std::string& why) {
  const CUcontext context = current_context();
  if (context == nullptr) {
    why = "the driver shows no context of " + kept->gpu->name();
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
  cuda.stream = stream;
  device.user_opaque = kept.release();
  device.free = [](AVHWDeviceContext* owner) { delete static_cast<Kept*>(owner->user_opaque); };
  const AvLogCapture log;
  if (const int error = av_hwdevice_ctx_init(result.get()); error < 0) {
    why = "FFmpeg cannot use CUDA: " + log.reason(av_error_text(error));
    return {};
  }
  return result;
}

}  // namespace

BufferRef make_decode_context(std::shared_ptr<CudaContext> gpu, std::string& why) {
  gpu->make_current();
  const cudaStream_t stream = gpu->decode_stream().get();
  return make_device(std::make_unique<Kept>(std::move(gpu)), stream, why);
}

BufferRef make_encode_context(std::shared_ptr<CudaContext> gpu, std::string& why) {
  gpu->make_current();
  auto kept = std::make_unique<Kept>(std::move(gpu));
  const cudaStream_t stream = kept->stream.emplace().get();
  return make_device(std::move(kept), stream, why);
}

}  // namespace framelane
