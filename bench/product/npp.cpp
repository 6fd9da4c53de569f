#include "bench/product/npp.hpp"

#include <dlfcn.h>

#include <vector>

namespace framelane::bench {

std::optional<Npp> Npp::find(const std::string& file) {
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

Npp::Npp(BgraToI420 convert) : convert_(convert) {
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

int Npp::enqueue(const ConstImageView& source, const ImageView& target, cudaStream_t stream) const {
  std::uint8_t* planes[3];
  int pitches[3];
  for (std::size_t plane = 0; plane < 3; ++plane) {
    planes[plane] = target.planes[plane].data;
    pitches[plane] = static_cast<int>(target.planes[plane].pitch);
  }
  Context context = context_;
  context.stream = stream;
  return convert_(source.planes[0].data, static_cast<int>(source.planes[0].pitch), planes, pitches,
                  {source.width, source.height}, context);
}

}  // namespace framelane::bench
