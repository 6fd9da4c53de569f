#pragma once

#include <string>
#include <vector>

#include "pipeline/stage/gpu.hpp"

namespace framelane {

/// Video codecs that really open on a GPU: "h264_nvenc", and "h264_nvdec" as a feed's status names
/// it.
struct GpuCodecs {
  std::vector<std::string> encoders;
  std::vector<std::string> decoders;
};

/// What `framelane devices` shows.
struct DevicesReport {
  struct Gpu {
    GpuReport gpu;
    GpuCodecs codecs;
  };
  std::string cpu_name;
  std::string cpu_model;
  int threads = 0;
  std::string simd;
  std::vector<Gpu> gpus;
  std::string no_gpu;                 ///< why `gpus` is empty
  std::vector<std::string> encoders;  ///< of the machine; those that need hardware if they open
  std::vector<std::string> decoders;  ///< but NVDEC's, which are the GPUs'
};

/// Both end with a newline.
std::string devices_json(const DevicesReport& report);
std::string devices_text(const DevicesReport& report);

}  // namespace framelane
