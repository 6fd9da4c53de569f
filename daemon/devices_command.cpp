extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <libavutil/log.h>
}

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "daemon/devices_report.hpp"
#include "kernels/row_kernels.hpp"
#include "pipeline/av/av_ptr.hpp"
#include "pipeline/av/buffer_ref.hpp"
#include "pipeline/base/processors.hpp"
#include "pipeline/encode/codec_options.hpp"
#include "pipeline/source/nvdec_trial.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane {
namespace {

/// Whether FFmpeg takes this codec from another library or a driver: "cuvid", "nvenc".
bool wraps(const AVCodec& codec, std::string_view what) {
  return codec.wrapper_name != nullptr && codec.wrapper_name == what;
}

/// Whether a codec can be opened. `gpu` (an AVHWDeviceContext) says on which GPU; empty: on any.
bool opens(const AVCodec& codec, const BufferRef& gpu = {}) {
  CodecContextPtr context(avcodec_alloc_context3(&codec));
  if (!context) return false;
  if (gpu) context->hw_device_ctx = BufferRef(gpu).release();
  context->width = 640;
  context->height = 480;
  context->time_base = {1, 25};
  context->framerate = {25, 1};
  if (av_codec_is_encoder(&codec) != 0) context->pix_fmt = AV_PIX_FMT_NV12;
  return avcodec_open2(context.get(), &codec, nullptr) == 0;
}

/// The codecs of this FFmpeg. One that needs hardware is listed only if it can be opened.
std::vector<std::string> usable_codecs(int (*is_kind)(const AVCodec*)) {
  std::vector<std::string> names;
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (codec->type != AVMEDIA_TYPE_VIDEO || is_kind(codec) == 0) continue;
    if (wraps(*codec, "cuvid")) continue;  // framelane uses NVDEC through FFmpeg's own decoders
    if (!needs_hardware(*codec) || opens(*codec)) names.emplace_back(codec->name);
  }
  std::ranges::sort(names);
  return names;
}

/// The codecs of NVDEC and NVENC on one GPU. FFmpeg's own decoders ask NVDEC only at the first
/// picture, so NVIDIA's decoder ("cuvid") of the same codec is tried: it asks when it is opened.
GpuCodecs codecs_of_gpu(std::size_t ordinal) {
  GpuCodecs codecs;
  AVBufferRef* device = nullptr;
  if (av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_CUDA, std::to_string(ordinal).c_str(),
                             nullptr, 0) < 0) {
    return codecs;
  }
  const BufferRef gpu = BufferRef::adopt(device);
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (wraps(*codec, "nvenc") && opens(*codec, gpu)) codecs.encoders.emplace_back(codec->name);
    const AVCodec* own = wraps(*codec, "cuvid") ? nvdec_of(codec->id) : nullptr;
    if (own != nullptr && opens(*codec, gpu)) codecs.decoders.push_back(nvdec_name(*own));
  }
  std::ranges::sort(codecs.encoders);
  std::ranges::sort(codecs.decoders);
  return codecs;
}

}  // namespace

int devices_command(bool json) {
  av_log_set_level(AV_LOG_QUIET);  // a codec that cannot be opened is a result here, not a fault
  DevicesReport report;
  for (GpuReport& gpu : measure_gpus(report.no_gpu)) {
    GpuCodecs codecs = codecs_of_gpu(report.gpus.size());
    report.gpus.push_back({std::move(gpu), std::move(codecs)});
  }
  const std::shared_ptr<Device> cpu = make_cpu_device();
  report.cpu_name = cpu->name();
  report.cpu_model = cpu->model();
  report.threads = processors();
  report.simd = simd_level();
  report.encoders = usable_codecs(av_codec_is_encoder);
  report.decoders = usable_codecs(av_codec_is_decoder);
  std::fputs((json ? devices_json(report) : devices_text(report)).c_str(), stdout);
  return kExitDone;
}

}  // namespace framelane
