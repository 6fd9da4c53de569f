#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/stage/device.hpp"

namespace framelane {

// Finding and opening GPUs. These functions exist in builds without the CUDA backend too. Those
// that open, count or measure set environment variables that CUDA reads, so they must be called
// before there are threads that read the environment.

/// The environment variable that tells CUDA how many hardware queues the streams of a process
/// share. It is set to 32, unless it is set already.
inline constexpr const char* kCudaConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

/// A GPU; or null, with one clause in `why` that says why it cannot be used and what would help.
struct GpuResult {
  std::shared_ptr<Device> device;
  std::string why;
};
/// The number of GPUs that the driver finds; if it is 0, `why` says why, as in GpuResult.
int count_gpus(std::string& why);
/// Opens GPUs, counted from 0. Frames are converted on `cpu` once a GPU is lost. The process must
/// have no other open.
std::vector<GpuResult> open_gpus(std::span<const int> ordinals, const std::shared_ptr<Device>& cpu);
GpuResult open_gpu(int ordinal, const std::shared_ptr<Device>& cpu);

/// A GPU as `framelane devices` shows it. Rates are in bytes per second, for large copies from and
/// to registered memory: each direction alone, and the sum of both at once. They are 0 if they
/// could not be measured.
struct GpuReport {
  std::string name;
  std::string model;
  std::string uuid;
  std::size_t memory_bytes = 0;
  int copy_engines = 0;
  std::string pcie_speed;  ///< under load, in Linux's words: "32.0 GT/s PCIe"; empty: unknown
  int pcie_width = 0;      ///< lanes; 0: unknown
  double upload_rate = 0;
  double download_rate = 0;
  double both_rate = 0;
  std::string problem;  ///< why something could not be measured; empty: all was
};
/// Measures every GPU, each for a fraction of a second. If there is none, `why` says why.
std::vector<GpuReport> measure_gpus(std::string& why);

/// The CUDA version that the program was built with, and the newest that the driver supports:
/// "13.0". Empty without the backend or without a driver. Any thread.
std::string cuda_build_version();
std::string cuda_driver_version();

}  // namespace framelane
