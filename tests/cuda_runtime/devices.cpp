// Entry points of the stand-in runtime: devices, versions and errors.
#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "tests/cuda_runtime/entry.hpp"

using namespace framelane::stand_in;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return entry("cudaGetDeviceCount", [&](State& s, Lock&) {
    *count = s.device_count;
    return s.device_count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  return entry("cudaInitDevice", [&](State& s, Lock&) {
    if (device < 0 || device >= s.device_count) return cudaErrorInvalidDevice;
    if ((flags & cudaInitDeviceFlagsAreValid) != 0 &&
        (device_flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync) {
      s.blocking_devices.insert(device);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return entry("cudaSetDevice", [&](State& s, Lock&) {
    if (device < 0 || device >= s.device_count) return cudaErrorInvalidDevice;
    current_device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return entry("cudaGetDevice", [&](State&, Lock&) {
    *device = current_device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return entry("cudaGetDeviceProperties", [&](State& s, Lock&) {
    if (device < 0 || device >= s.device_count) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "Stand-in %d", device);
    properties->totalGlobalMem = s.memory;
    properties->major = 9;
    properties->minor = 0;
    properties->multiProcessorCount = 1;
    properties->asyncEngineCount = 2;
    properties->pciBusID = device + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return entry("cudaDeviceGetAttribute", [&](State& s, Lock&) {
    if (device < 0 || device >= s.device_count) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return cudaSuccess;
      case cudaDevAttrMultiProcessorCount:
        *value = 1;
        return cudaSuccess;
      case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        return cudaSuccess;
      case cudaDevAttrL2CacheSize:
        *value = 0;
        return cudaSuccess;
      case cudaDevAttrAsyncEngineCount:
        *value = 2;
        return cudaSuccess;
      case cudaDevAttrPciBusId:
        *value = device + 1;
        return cudaSuccess;
      case cudaDevAttrPciDeviceId:
        *value = 0;
        return cudaSuccess;
      case cudaDevAttrPciDomainId:
        *value = 0;
        return cudaSuccess;
      case cudaDevAttrHostRegisterReadOnlySupported:
        *value = s.read_only_registration ? 1 : 0;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;  // add it here when framelane asks for it
    }
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return entry("cudaDeviceGetPCIBusId", [&](State& s, Lock&) {
    if (device < 0 || device >= s.device_count) return cudaErrorInvalidDevice;
    std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  return entry("cudaMemGetInfo", [&](State& s, Lock&) {
    *total = s.memory;
    *free_bytes = s.memory - std::min(s.memory, s.used(current_device));
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return entry("cudaRuntimeGetVersion", [&](State&, Lock&) {
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

/// Programs that link the stand-in driver have it (tests/nvenc/driver.cpp).
__attribute__((weak)) void* framelane_cuda_driver_entry(const char* name);

// There is no other driver to reach behind this runtime, whatever is installed.
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
#else
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* found) {
#endif
  return entry("cudaGetDriverEntryPoint", [&](State&, Lock&) {
    *function =
        framelane_cuda_driver_entry != nullptr ? framelane_cuda_driver_entry(name) : nullptr;
    *found =
        *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return entry("cudaDriverGetVersion", [&](State& s, Lock&) {
    *version = s.driver_version;
    return cudaSuccess;
  });
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.lost.value_or(last_error);
}

#define FRAMELANE_ERRORS(CASE)                                                   \
  CASE(cudaSuccess, "no error")                                                  \
  CASE(cudaErrorInvalidValue, "invalid argument")                                \
  CASE(cudaErrorMemoryAllocation, "out of memory")                               \
  CASE(cudaErrorInvalidConfiguration, "invalid configuration argument")          \
  CASE(cudaErrorInvalidPitchValue, "invalid pitch argument")                     \
  CASE(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")     \
  CASE(cudaErrorStubLibrary, "CUDA driver is a stub library")                    \
  CASE(cudaErrorInsufficientDriver,                                              \
       "CUDA driver version is insufficient for CUDA runtime version")           \
  CASE(cudaErrorInvalidDeviceFunction, "invalid device function")                \
  CASE(cudaErrorNoDevice, "no CUDA-capable device is detected")                  \
  CASE(cudaErrorInvalidDevice, "invalid device ordinal")                         \
  CASE(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")         \
  CASE(cudaErrorInvalidResourceHandle, "invalid resource handle")                \
  CASE(cudaErrorNotReady, "device not ready")                                    \
  CASE(cudaErrorIllegalAddress, "an illegal memory access was encountered")      \
  CASE(cudaErrorLaunchOutOfResources, "too many resources requested for launch") \
  CASE(cudaErrorLaunchTimeout, "the launch timed out and was terminated")        \
  CASE(cudaErrorHostMemoryAlreadyRegistered,                                     \
       "part or all of the requested memory range is already mapped")            \
  CASE(cudaErrorHostMemoryNotRegistered,                                         \
       "pointer does not correspond to a registered memory region")              \
  CASE(cudaErrorLaunchFailure, "unspecified launch failure")                     \
  CASE(cudaErrorUnknown, "unknown error")

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define FRAMELANE_NAME(code, text) \
  case code:                       \
    return #code;
    FRAMELANE_ERRORS(FRAMELANE_NAME)
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define FRAMELANE_TEXT(code, text) \
  case code:                       \
    return text;
    FRAMELANE_ERRORS(FRAMELANE_TEXT)
    default:
      return "unrecognized error code";
  }
}

}  // extern "C"
