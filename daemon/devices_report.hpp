#pragma once

#include <string>
#include <vector>

#include "pipeline/stage/gpu.hpp"

namespace framelane {

/// Video codecs that have been opened on a GPU, by the names that a feed's status has:
/// "h264_nvenc", "h264_nvdec".
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
  std::string no_gpu;  ///< why `gpus` is empty
  std::vector<std::string>
      encoders;  ///< of the machine. Those that need hardware are in it if they can be opened
  std::vector<std::string> decoders;  ///< the same, without those of NVDEC, which belong to a GPU
};

/// The report as JSON, and as text for a terminal. Both end with a newline.
std::string devices_json(const DevicesReport& report);
std::string devices_text(const DevicesReport& report);

}  // namespace framelane
