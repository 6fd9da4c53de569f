// Takes the place of libcuda.so.1 for FFmpeg's frames on a GPU and for its NVENC encoders. It has
// no memory or streams of its own: it calls the stand-in runtime of the program that it is linked
// to. A CUcontext is the number of its device, plus one.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>
#include <vector>

namespace {

using Result = int;  // CUresult, whose first values equal the runtime's
constexpr Result kNotSupported = 801;
constexpr int kTextureAlignment = 14;  // CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT

thread_local std::vector<int> g_before;  // devices that were current before each push

void* context_of(int device) { return reinterpret_cast<void*>(std::intptr_t{device} + 1); }
int device_of(void* context) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1;
}

/// CUDA_MEMCPY2D.
struct Copy {
  struct Side {
    std::size_t x = 0;
    std::size_t y = 0;
    int type = 0;  // 1: host, 2: device
    void* host = nullptr;
    unsigned long long device = 0;
    void* array = nullptr;
    std::size_t pitch = 0;

    std::uint8_t* at() const {
      auto* base = static_cast<std::uint8_t*>(
          type == 1 ? host : reinterpret_cast<void*>(static_cast<std::uintptr_t>(device)));
      return base + y * pitch + x;
    }
  };
  Side from;
  Side to;
  std::size_t width = 0;
  std::size_t height = 0;
};

Result current_context(void** context) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  *context = context_of(device);
  return cudaSuccess;
}

}  // namespace

extern "C" {

/// For the stand-in runtime's cudaGetDriverEntryPoint.
void* framelane_cuda_driver_entry(const char* name) {
  return std::string_view(name) == "cuCtxGetCurrent" ? reinterpret_cast<void*>(&current_context)
                                                     : nullptr;
}

Result cuInit(unsigned) { return cudaSuccess; }
Result cuDriverGetVersion(int* version) { return cudaDriverGetVersion(version); }
Result cuDeviceGetCount(int* count) { return cudaGetDeviceCount(count); }
Result cuDeviceGet(int* device, int ordinal) { return *device = ordinal, cudaSuccess; }
Result cuDeviceGetName(char* name, int size, int device) {
  return std::snprintf(name, static_cast<std::size_t>(size), "Stand-in %d", device), cudaSuccess;
}
Result cuDeviceComputeCapability(int* major, int* minor, int) {
  return *major = 9, *minor = 0, cudaSuccess;
}
Result cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == kTextureAlignment ? 512 : 1, cudaSuccess;
}
Result cuCtxGetCurrent(void** context) { return current_context(context); }
Result cuCtxCreate_v2(void** context, unsigned, int device) {
  *context = context_of(device);
  int before = 0;
  cudaGetDevice(&before);
  g_before.push_back(before);
  return cudaSetDevice(device);
}
Result cuCtxDestroy_v2(void*) { return cudaSuccess; }
// Which context is current is no question for the GPU, so these two work when it is lost.
Result cuCtxPushCurrent_v2(void* context) {
  int before = 0;
  cudaGetDevice(&before);
  g_before.push_back(before);
  cudaSetDevice(device_of(context));
  return cudaSuccess;
}
Result cuCtxPopCurrent_v2(void** context) {
  if (g_before.empty()) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  if (context != nullptr) current_context(context);
  cudaSetDevice(g_before.back());
  g_before.pop_back();
  return cudaSuccess;
}
Result cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  *address = reinterpret_cast<std::uintptr_t>(memory);
  return error;
}
Result cuMemFree_v2(unsigned long long address) {
  return cudaFree(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)));
}
Result cuMemcpy2DAsync_v2(const Copy* copy, void* stream) {
  const cudaMemcpyKind kind = copy->to.type == 1     ? cudaMemcpyDeviceToHost
                              : copy->from.type == 1 ? cudaMemcpyHostToDevice
                                                     : cudaMemcpyDeviceToDevice;
  return cudaMemcpy2DAsync(copy->to.at(), copy->to.pitch, copy->from.at(), copy->from.pitch,
                           copy->width, copy->height, kind, static_cast<cudaStream_t>(stream));
}
Result cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* stream) {
  return cudaMemcpyAsync(to, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(from)),
                         bytes, cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream));
}
Result cuLaunchHostFunc(void* stream, cudaHostFn_t function, void* data) {
  return cudaLaunchHostFunc(static_cast<cudaStream_t>(stream), function, data);
}
Result cuStreamSynchronize(void* stream) {
  return cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
}
Result cuGetErrorName(int error, const char** name) {
  return *name = cudaGetErrorName(static_cast<cudaError_t>(error)), cudaSuccess;
}
Result cuGetErrorString(int error, const char** text) {
  return *text = cudaGetErrorString(static_cast<cudaError_t>(error)), cudaSuccess;
}

// FFmpeg looks these up and does not call them.
#define FRAMELANE_UNUSED(name) \
  Result name() { return kNotSupported; }
FRAMELANE_UNUSED(cuArray3DCreate_v2)
FRAMELANE_UNUSED(cuArrayCreate_v2)
FRAMELANE_UNUSED(cuArrayDestroy)
FRAMELANE_UNUSED(cuCtxGetDevice)
FRAMELANE_UNUSED(cuCtxSetLimit)
FRAMELANE_UNUSED(cuDestroyExternalMemory)
FRAMELANE_UNUSED(cuDestroyExternalSemaphore)
FRAMELANE_UNUSED(cuDeviceGetByPCIBusId)
FRAMELANE_UNUSED(cuDeviceGetPCIBusId)
FRAMELANE_UNUSED(cuDeviceGetUuid)
FRAMELANE_UNUSED(cuDevicePrimaryCtxGetState)
FRAMELANE_UNUSED(cuDevicePrimaryCtxRelease)
FRAMELANE_UNUSED(cuDevicePrimaryCtxReset)
FRAMELANE_UNUSED(cuDevicePrimaryCtxRetain)
FRAMELANE_UNUSED(cuDevicePrimaryCtxSetFlags)
FRAMELANE_UNUSED(cuEventCreate)
FRAMELANE_UNUSED(cuEventDestroy_v2)
FRAMELANE_UNUSED(cuEventQuery)
FRAMELANE_UNUSED(cuEventRecord)
FRAMELANE_UNUSED(cuEventSynchronize)
FRAMELANE_UNUSED(cuExternalMemoryGetMappedBuffer)
FRAMELANE_UNUSED(cuExternalMemoryGetMappedMipmappedArray)
FRAMELANE_UNUSED(cuGLGetDevices_v2)
FRAMELANE_UNUSED(cuGraphicsGLRegisterImage)
FRAMELANE_UNUSED(cuGraphicsMapResources)
FRAMELANE_UNUSED(cuGraphicsResourceGetMappedPointer_v2)
FRAMELANE_UNUSED(cuGraphicsSubResourceGetMappedArray)
FRAMELANE_UNUSED(cuGraphicsUnmapResources)
FRAMELANE_UNUSED(cuGraphicsUnregisterResource)
FRAMELANE_UNUSED(cuImportExternalMemory)
FRAMELANE_UNUSED(cuImportExternalSemaphore)
FRAMELANE_UNUSED(cuLaunchKernel)
FRAMELANE_UNUSED(cuLinkAddData)
FRAMELANE_UNUSED(cuLinkComplete)
FRAMELANE_UNUSED(cuLinkCreate)
FRAMELANE_UNUSED(cuLinkDestroy)
FRAMELANE_UNUSED(cuMemAllocManaged)
FRAMELANE_UNUSED(cuMemAllocPitch_v2)
FRAMELANE_UNUSED(cuMemcpy)
FRAMELANE_UNUSED(cuMemcpy2D_v2)
FRAMELANE_UNUSED(cuMemcpyAsync)
FRAMELANE_UNUSED(cuMemcpyDtoDAsync_v2)
FRAMELANE_UNUSED(cuMemcpyDtoD_v2)
FRAMELANE_UNUSED(cuMemcpyDtoH_v2)
FRAMELANE_UNUSED(cuMemcpyHtoDAsync_v2)
FRAMELANE_UNUSED(cuMemcpyHtoD_v2)
FRAMELANE_UNUSED(cuMemsetD8Async)
FRAMELANE_UNUSED(cuMipmappedArrayDestroy)
FRAMELANE_UNUSED(cuMipmappedArrayGetLevel)
FRAMELANE_UNUSED(cuModuleGetFunction)
FRAMELANE_UNUSED(cuModuleGetGlobal)
FRAMELANE_UNUSED(cuModuleLoadData)
FRAMELANE_UNUSED(cuModuleUnload)
FRAMELANE_UNUSED(cuSignalExternalSemaphoresAsync)
FRAMELANE_UNUSED(cuStreamAddCallback)
FRAMELANE_UNUSED(cuStreamCreate)
FRAMELANE_UNUSED(cuStreamDestroy_v2)
FRAMELANE_UNUSED(cuStreamQuery)
FRAMELANE_UNUSED(cuStreamWaitEvent)
FRAMELANE_UNUSED(cuTexObjectCreate)
FRAMELANE_UNUSED(cuTexObjectDestroy)
FRAMELANE_UNUSED(cuWaitExternalSemaphoresAsync)

}  // extern "C"
