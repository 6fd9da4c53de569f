// NVIDIA's Performance Primitives, to compare with: the one conversion that they share with us,
// BT.601 from BGRA to I420. Their library is loaded at run time, where it is installed; nothing
// of ours needs it.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/image_view.hpp"

namespace framelane::bench {

class Npp {
 public:
  /// For the current device, from that file or, with an empty name, from where it is installed;
  /// nothing where it is not. It stays loaded.
  static std::optional<Npp> find(const std::string& file = {}) {
    std::vector<std::string> names{file};
    if (file.empty()) names = {"libnppicc.so", "libnppicc.so.13", "libnppicc.so.12"};
    for (const std::string& name : names) {
      void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      void* const symbol = dlsym(library, "nppiBGRToYCbCr420_8u_AC4P3R_Ctx");
      if (symbol != nullptr) return Npp(reinterpret_cast<BgraToI420>(symbol));
    }
    return std::nullopt;
  }

  /// Queues the conversion; 0, or NPP's status, which is an error if negative and a warning
  /// otherwise (of odd sizes it leaves the last row or column out). Views of device memory, BGRA
  /// and I420.
  int enqueue(const ConstImageView& source, const ImageView& target, cudaStream_t stream) const {
    std::uint8_t* planes[3];
    int pitches[3];
    for (std::size_t plane = 0; plane < 3; ++plane) {
      planes[plane] = target.planes[plane].data;
      pitches[plane] = static_cast<int>(target.planes[plane].pitch);
    }
    Context context = context_;
    context.stream = stream;
    return convert_(source.planes[0].data, static_cast<int>(source.planes[0].pitch), planes,
                    pitches, {source.width, source.height}, context);
  }

 private:
  // NppStreamContext and NppiSize of NPP 12 and 13, passed by value.
  struct Context {
    cudaStream_t stream;
    int device, multiprocessors, threads_per_multiprocessor, threads_per_block;
    std::size_t shared_bytes_per_block;
    int major, minor;
    unsigned stream_flags;
    int reserved;
  };
  struct ImageSize {
    int width, height;
  };
  using BgraToI420 = int (*)(const std::uint8_t*, int, std::uint8_t**, int*, ImageSize, Context);

  explicit Npp(BgraToI420 convert) : convert_(convert) {
    int device = 0;
    cudaDeviceProp properties{};
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
      return;  // NPP says itself what it lacks
    }
    context_ = {nullptr,
                device,
                properties.multiProcessorCount,
                properties.maxThreadsPerMultiProcessor,
                properties.maxThreadsPerBlock,
                properties.sharedMemPerBlock,
                properties.major,
                properties.minor,
                cudaStreamNonBlocking,
                0};
  }

  BgraToI420 convert_;
  Context context_{};
};

}  // namespace framelane::bench
