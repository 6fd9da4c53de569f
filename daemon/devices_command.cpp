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
#include "pipeline/source/nvdec_trial.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/gpu.hpp"

namespace framelane {
namespace {

bool needs_hardware(const AVCodec& codec) {
  return (codec.capabilities & (AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID)) != 0;
}

/// Whether it is a library's or a driver's ("cuvid", "nvenc") and not FFmpeg's own.
bool wraps(const AVCodec& codec, std::string_view what) {
  return codec.wrapper_name != nullptr && codec.wrapper_name == what;
}

/// `gpu`: on which, if that is to be chosen (an AVHWDeviceContext).
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

/// What runs in software is there when it is built in; what needs hardware has to show it.
std::vector<std::string> usable_codecs(int (*is_kind)(const AVCodec*)) {
  std::vector<std::string> names;
  void* position = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&position)) {
    if (codec->type != AVMEDIA_TYPE_VIDEO || is_kind(codec) == 0) continue;
    if (wraps(*codec, "cuvid")) continue;  // framelane takes NVDEC in another way
    if (!needs_hardware(*codec) || opens(*codec)) names.emplace_back(codec->name);
  }
  std::ranges::sort(names);
  return names;
}

/// What NVDEC and NVENC of one GPU take. Whether NVDEC takes a codec is told by NVIDIA's own
/// decoder of it, which asks when it is opened; FFmpeg's asks at the first picture.
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
  av_log_set_level(AV_LOG_QUIET);  // what does not open is the answer, not a fault
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
