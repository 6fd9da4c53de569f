#include "bench/product/npp.hpp"

#include <dlfcn.h>

#include <vector>

namespace framelane::bench {
namespace {

constexpr int kCubic = 4;  // NPPI_INTER_CUBIC

/// The function, from `file` or, with an empty name, from `library` where it is installed; null:
/// there is none.
void* find_function(const char* function, const std::string& library, const std::string& file) {
  std::vector<std::string> names{file};
  if (file.empty()) names = {library, library + ".13", library + ".12"};
  for (const std::string& name : names) {
    void* const loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) continue;
    if (void* const found = dlsym(loaded, function)) return found;
  }
  return nullptr;
}

}  // namespace

std::optional<Npp> Npp::find(const std::string& file) {
  void* const convert = find_function("nppiBGRToYCbCr420_8u_AC4P3R_Ctx", "libnppicc.so", file);
  if (convert == nullptr) return std::nullopt;
  void* const resize = find_function("nppiResize_8u_C4R_Ctx", "libnppig.so", file);
  return Npp(reinterpret_cast<BgraToI420>(convert), reinterpret_cast<Resize>(resize));
}

Npp::Npp(BgraToI420 convert, Resize resize) : convert_(convert), resize_(resize) {
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

Npp::Context Npp::context_on(cudaStream_t stream) const {
  Context context = context_;
  context.stream = stream;
  return context;
}

int Npp::enqueue(const ConstImageView& source, const ImageView& target, cudaStream_t stream) const {
  std::uint8_t* planes[3];
  int pitches[3];
  for (std::size_t plane = 0; plane < 3; ++plane) {
    planes[plane] = target.planes[plane].data;
    pitches[plane] = static_cast<int>(target.planes[plane].pitch);
  }
  return convert_(source.planes[0].data, static_cast<int>(source.planes[0].pitch), planes, pitches,
                  {source.width, source.height}, context_on(stream));
}

int Npp::enqueue_resize(const ConstImageView& source, const ImageView& target,
                        cudaStream_t stream) const {
  return resize_(source.planes[0].data, static_cast<int>(source.planes[0].pitch),
                 {source.width, source.height}, {0, 0, source.width, source.height},
                 target.planes[0].data, static_cast<int>(target.planes[0].pitch),
                 {target.width, target.height}, {0, 0, target.width, target.height}, kCubic,
                 context_on(stream));
}

}  // namespace framelane::bench
