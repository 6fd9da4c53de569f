extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/log.h>
}

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "pipeline/av.hpp"
#include "pipeline/gpu.hpp"
#include "pipeline/processors.hpp"

namespace framelane {
namespace {

bool needs_hardware(const AVCodec& codec) {
  return (codec.capabilities & (AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID)) != 0;
}

bool opens(const AVCodec& codec) {
  CodecContextPtr context(avcodec_alloc_context3(&codec));
  if (!context) return false;
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
    if (!needs_hardware(*codec) || opens(*codec)) names.emplace_back(codec->name);
  }
  std::ranges::sort(names);
  return names;
}

std::string simd_level() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  if (__builtin_cpu_supports("sse4.1")) return "SSE4.1";
  return "baseline";
}

nlohmann::ordered_json as_json(const GpuReport& gpu) {
  nlohmann::ordered_json json{{"name", gpu.name},
                              {"model", gpu.model},
                              {"uuid", gpu.uuid},
                              {"memory_bytes", gpu.memory_bytes},
                              {"copy_engines", gpu.copy_engines},
                              {"pcie_speed", gpu.pcie_speed},
                              {"pcie_width", gpu.pcie_width},
                              {"h2d_bytes_per_second", gpu.upload_rate},
                              {"d2h_bytes_per_second", gpu.download_rate},
                              {"both_bytes_per_second", gpu.both_rate}};
  if (!gpu.problem.empty()) json["problem"] = gpu.problem;
  return json;
}

void print(const GpuReport& gpu) {
  std::printf("%s: %s, %.1f GiB, %d copy engines", gpu.name.c_str(), gpu.model.c_str(),
              static_cast<double>(gpu.memory_bytes) / (1 << 30), gpu.copy_engines);
  if (gpu.pcie_width > 0) std::printf(", %s x%d", gpu.pcie_speed.c_str(), gpu.pcie_width);
  std::printf(", %s\n", gpu.uuid.c_str());
  if (gpu.problem.empty()) {
    std::printf("  copies: to it %.1f GB/s, from it %.1f GB/s, both at once %.1f GB/s\n",
                gpu.upload_rate * 1e-9, gpu.download_rate * 1e-9, gpu.both_rate * 1e-9);
  } else {
    std::printf("  cannot be used: %s\n", gpu.problem.c_str());
  }
}

void print_names(const char* title, const std::vector<std::string>& names) {
  std::printf("%s (%zu):\n", title, names.size());
  std::string line;
  for (const std::string& name : names) {
    if (line.size() + name.size() + 1 > 98) {
      std::printf(" %s\n", line.c_str());
      line.clear();
    }
    line += ' ' + name;
  }
  if (!line.empty()) std::printf(" %s\n", line.c_str());
}

}  // namespace

int devices_command(bool json) {
  av_log_set_level(AV_LOG_QUIET);  // what does not open is the answer, not a fault
  std::string no_gpu;
  const std::vector<GpuReport> gpus = measure_gpus(no_gpu);
  const std::shared_ptr<Device> cpu = make_cpu_device();
  const int threads = processors();
  const std::string simd = simd_level();
  const std::vector<std::string> encoders = usable_codecs(av_codec_is_encoder);
  const std::vector<std::string> decoders = usable_codecs(av_codec_is_decoder);
  if (json) {
    nlohmann::ordered_json devices{
        {"devices",
         {{{"name", cpu->name()}, {"model", cpu->model()}, {"threads", threads}, {"simd", simd}}}},
        {"encoders", encoders},
        {"decoders", decoders}};
    for (const GpuReport& gpu : gpus) devices["devices"].push_back(as_json(gpu));
    if (gpus.empty()) devices["no_gpu"] = no_gpu;
    std::printf("%s\n", devices.dump(2).c_str());
    return kExitDone;
  }
  std::printf("cpu: %s, %d threads, %s\n", cpu->model().c_str(), threads, simd.c_str());
  for (const GpuReport& gpu : gpus) print(gpu);
  if (gpus.empty()) std::printf("cuda: %s\n", no_gpu.c_str());
  print_names("video encoders", encoders);
  print_names("video decoders", decoders);
  return kExitDone;
}

}  // namespace framelane
