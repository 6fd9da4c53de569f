#include "pipeline/stage/gpu.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/stage/cuda/cuda_device.hpp"
#include "pipeline/stage/device_choice.hpp"

namespace framelane {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

/// A folder for compiled kernels that outlives this process, where there is no home folder. Empty
/// if there is none.
std::string cache_folder() {
  for (const char* name : {"CACHE_DIRECTORY", "XDG_CACHE_HOME"}) {  // the first is systemd's
    const char* folder = std::getenv(name);
    if (folder != nullptr && *folder == '/' && ::access(folder, W_OK) == 0) {
      return std::string(folder) + "/cuda";
    }
  }
  // This process will run the machine code in it, so nobody else may be able to write there.
  std::error_code none;
  const std::string folder = std::filesystem::temp_directory_path(none) /
                             ("framelane-cuda-" + std::to_string(::geteuid()));
  if (none) return "";
  ::mkdir(folder.c_str(), S_IRWXU);
  struct stat found {};
  const bool ours = ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
                    found.st_uid == ::geteuid() && (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return ours ? folder : "";
}

/// Sets what CUDA reads from the environment at its first call.
void prepare_environment() {
  // Streams that share a hardware queue hold each other up, so more queues than the default of 8.
  ::setenv(kCudaConnections, "32", 0);
  // For a GPU that is newer than this build CUDA compiles the kernels at the first start, and keeps
  // them for later ones in the home folder. Without a home it needs another folder.
  const char* home = std::getenv("HOME");
  if (home != nullptr && ::access(home, W_OK) == 0) return;
  if (std::getenv("CUDA_CACHE_PATH") != nullptr) return;
  const std::string cache = cache_folder();
  if (!cache.empty()) ::setenv("CUDA_CACHE_PATH", cache.c_str(), 0);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// A registered host buffer and GPU memory of the same size, to measure copies with.
class CopyProbe {
 public:
  CopyProbe() {
    cuda::check(cudaHostRegister(host_.data(), kBytes, cudaHostRegisterDefault),
                "cudaHostRegister");
    registered_ = true;
    stream_.synchronize();
  }
  ~CopyProbe() {
    if (registered_) cuda::report(cudaHostUnregister(host_.data()), "cudaHostUnregister");
  }

  void copy(cudaMemcpyKind kind) const {
    void* const to = kind == cudaMemcpyHostToDevice ? device_.data() : host_.data();
    const void* const from = kind == cudaMemcpyHostToDevice ? host_.data() : device_.data();
    cuda::check(cudaMemcpyAsync(to, from, kBytes, kind, stream_.get()), "cudaMemcpyAsync");
  }
  void synchronize() const { stream_.synchronize(); }

  static constexpr std::size_t kBytes = std::size_t{64} << 20;

 private:
  HostBuffer host_{kBytes};
  CudaStream stream_;
  DevicePool pool_{stream_};
  DeviceMemory device_{pool_, kBytes};
  bool registered_ = false;
};

/// Bytes per second of all copies together, which run side by side.
double rate(std::initializer_list<std::pair<const CopyProbe*, cudaMemcpyKind>> copies) {
  constexpr int kRounds = 8;
  std::chrono::steady_clock::time_point start;
  for (int round = 0; round <= kRounds; ++round) {
    for (const auto& [probe, kind] : copies) probe->copy(kind);
    if (round > 0) continue;  // the first round only warms up
    for (const auto& [probe, kind] : copies) probe->synchronize();
    start = std::chrono::steady_clock::now();
  }
  for (const auto& [probe, kind] : copies) probe->synchronize();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return static_cast<double>(CopyProbe::kBytes) * kRounds * static_cast<double>(copies.size()) /
         time.count();
}

GpuReport measure(int ordinal) {
  GpuReport report;
  report.name = gpu_name(ordinal);
  try {
    cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    report.model = properties.name;
    report.uuid = gpu_uuid_text(properties.uuid);
    report.memory_bytes = properties.totalGlobalMem;
    report.copy_engines = properties.asyncEngineCount;
    std::array<char, 32> bus{};
    cuda::check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), ordinal),
                "cudaDeviceGetPCIBusId");
    std::string address = bus.data();
    std::ranges::transform(address, address.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string folder = "/sys/bus/pci/devices/" + address;
    const CopyProbe one;
    const CopyProbe other;
    report.upload_rate = rate({{&one, cudaMemcpyHostToDevice}});
    report.download_rate = rate({{&one, cudaMemcpyDeviceToHost}});
    report.both_rate = rate({{&one, cudaMemcpyHostToDevice}, {&other, cudaMemcpyDeviceToHost}});
    // Read after the copies: an idle GPU slows its link down.
    report.pcie_speed = first_line(folder + "/current_link_speed");
    report.pcie_width = std::atoi(first_line(folder + "/current_link_width").c_str());
  } catch (const CudaError& error) {
    report.problem = error.what();
  } catch (const FeedError& error) {
    report.problem = error.what();
  }
  return report;
}

}  // namespace

int count_gpus(std::string& why) {
  prepare_environment();
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  int driver = 0;
  cudaDriverGetVersion(&driver);
  switch (result) {
    case cudaErrorStubLibrary:
      why =
          "libcuda.so.1 is a toolkit's stub and not the driver: install NVIDIA's driver, or start "
          "the container with its GPUs (--gpus all)";
      break;
    case cudaErrorInsufficientDriver:
      why = driver == 0
                ? "there is no NVIDIA driver (libcuda.so.1)"
                : "the NVIDIA driver supports CUDA " + version_text(driver) +
                      " and this build needs " + version_text(CUDART_VERSION / 1000 * 1000) +
                      " or later: update the driver";
      break;
    case cudaSuccess:
    case cudaErrorNoDevice:
      why = "the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)";
      break;
    default:
      why = CudaError(result, "cudaGetDeviceCount").what();
  }
  return 0;
}

std::vector<GpuResult> open_gpus(std::span<const int> ordinals,
                                 const std::shared_ptr<Device>& cpu) {
  std::string why;
  const int count = count_gpus(why);
  if (count == 0) return {ordinals.size(), GpuResult{nullptr, why}};
  const auto registrar = std::make_shared<GpuRegistrar>();
  std::vector<GpuResult> results;
  for (const int ordinal : ordinals) {
    const std::string number = std::to_string(ordinal);
    GpuResult& result = results.emplace_back();
    if (ordinal >= count) {
      result.why = "there is no GPU " + number + ": the driver finds " + std::to_string(count) +
                   ", counted from 0";
      continue;
    }
    try {
      result.device = CudaDevice::open(ordinal, cpu, CudaDevice::kHungAfter, registrar);
    } catch (const CudaError& error) {
      result.why = "GPU " + number + " cannot be used: " + error.what();
    } catch (const FeedError& error) {
      result.why = "GPU " + number + " cannot be used: " + error.what();
    }
  }
  return results;
}

GpuResult open_gpu(int ordinal, const std::shared_ptr<Device>& cpu) {
  return std::move(open_gpus({&ordinal, 1}, cpu).front());
}

std::vector<GpuReport> measure_gpus(std::string& why) {
  std::vector<GpuReport> reports;
  const int count = count_gpus(why);
  for (int ordinal = 0; ordinal < count; ++ordinal) reports.push_back(measure(ordinal));
  return reports;
}

std::string cuda_build_version() { return version_text(CUDART_VERSION); }

std::string cuda_driver_version() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return {};
  return version_text(version);
}

}  // namespace framelane
