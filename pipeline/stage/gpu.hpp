#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/device.hpp"

namespace framelane {

// What there is of GPUs, the same in builds with and without the CUDA backend. open_gpu and
// measure_gpus set environment variables that CUDA reads: call them before threads that read the
// environment exist.

/// CUDA's variable for how many hardware queues the streams of a process share. open_gpu and
/// measure_gpus set it to 32 unless it is set.
inline constexpr const char* kCudaConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

/// A GPU, or in `why` one clause that says why there is none to use and what would help.
struct GpuResult {
  std::shared_ptr<Device> device;
  std::string why;
};
/// Opens GPU `ordinal`; frames go to `cpu` once it is lost.
GpuResult open_gpu(int ordinal, std::shared_ptr<Device> cpu);

/// A GPU as `framelane devices` shows it. Rates are bytes per second of large copies from and to
/// registered memory, each way alone and both ways at once (the sum).
struct GpuReport {
  std::string name;
  std::string model;
  std::string uuid;
  std::size_t memory_bytes = 0;
  int copy_engines = 0;
  std::string pcie_speed;  ///< under load, as the kernel says it, "32.0 GT/s PCIe"; or empty
  int pcie_width = 0;      ///< lanes; 0: unknown
  double upload_rate = 0;
  double download_rate = 0;
  double both_rate = 0;  ///< 0, as the others, when it could not be measured
  std::string problem;   ///< why not
};
/// Measures every GPU, for a fraction of a second each. With none, `why` says why.
std::vector<GpuReport> measure_gpus(std::string& why);

/// The CUDA version that the program was built with and the newest that the driver supports,
/// "13.0"; empty without a backend or a driver. Any thread.
std::string cuda_build_version();
std::string cuda_driver_version();

}  // namespace framelane
