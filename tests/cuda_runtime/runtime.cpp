// The entry points of the stand-in runtime: those of NVIDIA's that framelane calls, and those that
// code compiled by nvcc calls by itself.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_runtime/state.hpp"

namespace framelane::stand_in {
namespace {

constexpr std::size_t kAlignment = 256;  // as cudaMalloc promises
constexpr std::uint8_t kFresh = 0xCD;    // new memory is not zero
constexpr std::uint8_t kGuard = 0xFD;
// AddressSanitizer watches both ends of exact allocations by itself.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kGuardBytes = 0;
#else
constexpr std::size_t kGuardBytes = 64;
#endif

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;
struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<CallConfiguration> call_configurations;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

// Nearly every entry point: counted, made to fail if it is to, and run with the lock held.
template <typename Body>
cudaError_t entry(const char* function, Body body) {
  const Inside in_call;
  State& s = state();
  std::unique_lock lock(s.mutex);
  if (const cudaError_t error = s.enter(function, lock)) return result(error);
  if (s.skip(function)) return cudaSuccess;
  return result(body(s, lock));
}

// Those that free and destroy do so even when they report an error.
template <typename Body>
cudaError_t releasing_entry(const char* function, Body body) {
  const Inside in_call;
  State& s = state();
  std::unique_lock lock(s.mutex);
  const cudaError_t refused = s.enter(function, lock);
  const cudaError_t done = body(s, lock);
  return result(refused != cudaSuccess ? refused : done);
}

// Calls with_object(object); a handle that is not alive, such as the default stream's, is an error.
template <typename Map, typename WithObject>
cudaError_t on(Map& map, typename Map::key_type handle, WithObject with_object) {
  const auto found = map.find(handle);
  if (found == map.end()) return cudaErrorInvalidResourceHandle;
  if (found->second->device != current_device) ++state().misplaced_calls;
  return with_object(found->second);
}

// The default stream is there when it is asked for by name; null is still nobody's.
void make_default_stream(State& s) {
  auto created = std::make_shared<Stream>();
  created->device = current_device;
  s.streams.emplace(cudaStreamLegacy, created);
  serve(created);
}

cudaError_t enqueue(State& s, cudaStream_t stream, Operation operation) {
  if (stream == cudaStreamLegacy && !s.streams.contains(stream)) make_default_stream(s);
  return on(s.streams, stream, [&](const std::shared_ptr<Stream>& target) {
    target->queue.push_back(std::move(operation));
    ++target->queued;
    s.changed.notify_all();
    return cudaSuccess;
  });
}

// Waits until `done` holds or the device is lost and nothing runs on it any more.
template <typename Done>
cudaError_t wait(State& s, std::unique_lock<std::mutex>& lock, Done done) {
  s.changed.wait(lock, [&] { return s.lost ? s.running == 0 : done(); });
  return s.lost.value_or(cudaSuccess);
}

// What a copy touches on either side: `bytes` from its first to its last.
cudaError_t check_copy(State& s, const void* to, std::size_t to_bytes, const void* from,
                       std::size_t from_bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  const auto side_is_right = [&s](const void* at, std::size_t bytes, bool device) {
    return device ? s.allocation_of(at, bytes) != nullptr : s.allocation_of(at, 1) == nullptr;
  };
  if (!side_is_right(to, to_bytes, to_device) || !side_is_right(from, from_bytes, from_device)) {
    return cudaErrorInvalidValue;
  }
  if ((!to_device && !s.is_registered(to, to_bytes)) ||
      (!from_device && !s.is_registered(from, from_bytes))) {
    ++s.pageable_copies;
  }
  return cudaSuccess;
}

cudaError_t copy_2d(const char* function, void* to, std::size_t to_pitch, const void* from,
                    std::size_t from_pitch, std::size_t width, std::size_t height,
                    cudaMemcpyKind kind, cudaStream_t stream) {
  return entry(function, [&](State& s, std::unique_lock<std::mutex>&) {
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    const cudaError_t error = check_copy(s, to, (height - 1) * to_pitch + width, from,
                                         (height - 1) * from_pitch + width, kind);
    if (error != cudaSuccess) return error;
    const Allocation* memory = s.allocation_of(kind == cudaMemcpyDeviceToHost ? from : to, 1);
    return enqueue(
        s, stream,
        {[=, &s, there = memory->there] {
           {
             const std::scoped_lock lock(s.mutex);
             if (!*there) ++s.premature_copies;
           }
           for (std::size_t y = 0; y < height; ++y) {
             std::memcpy(static_cast<std::uint8_t*>(to) + y * to_pitch,
                         static_cast<const std::uint8_t*>(from) + y * from_pitch, width);
           }
           if (const std::size_t from_on = s.spoilt_from;
               kind == cudaMemcpyDeviceToHost && from_on > 0 && width * height >= from_on) {
             static_cast<std::uint8_t*>(to)[(height - 1) * to_pitch + width - 1] ^= 1;
           }
         },
         nullptr});
  });
}

cudaError_t allocate(State& s, void** memory, std::size_t bytes, bool there) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > s.memory || s.used(current_device) > s.memory - bytes) {
    return cudaErrorMemoryAllocation;
  }
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes + kGuardBytes) != 0) {
    return cudaErrorMemoryAllocation;
  }
  std::memset(block, kFresh, bytes);
  std::memset(static_cast<std::uint8_t*>(block) + bytes, kGuard, kGuardBytes);
  s.allocations[reinterpret_cast<std::uintptr_t>(block)] = {bytes, current_device,
                                                            std::make_shared<bool>(there)};
  *memory = block;
  return cudaSuccess;
}

// Requires that it is allocated.
void deallocate(State& s, void* memory) {
  const auto found = s.allocations.find(reinterpret_cast<std::uintptr_t>(memory));
  const auto* guard = static_cast<const std::uint8_t*>(memory) + found->second.bytes;
  if (std::any_of(guard, guard + kGuardBytes, [](std::uint8_t b) { return b != kGuard; })) {
    ++s.overruns;
  }
  s.allocations.erase(found);
  std::free(memory);
}

cudaError_t launch(const void* entry_point, dim3 grid, dim3 block, void** parameters,
                   cudaStream_t stream) {
  return entry("cudaLaunchKernel", [&](State& s, std::unique_lock<std::mutex>&) {
    const auto kernel = s.kernels.find(entry_point);
    if (kernel == s.kernels.end() || kernel->second.run == nullptr) {
      return cudaErrorInvalidDeviceFunction;
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
        block.x != kernel->second.block.x || block.y != kernel->second.block.y ||
        block.z != kernel->second.block.z || block.x * block.y * block.z > 1024) {
      return cudaErrorInvalidConfiguration;
    }
    if (!std::exchange(kernel->second.loaded, true)) ++s.lazy_loads;
    const auto* first = static_cast<const std::byte*>(parameters[0]);
    std::vector<std::byte> body(first, first + kernel->second.body_bytes);
    const cuda::HostBody run = kernel->second.run;
    return enqueue(s, stream,
                   {[run, grid, body = std::move(body)] { run(body.data(), grid); }, nullptr});
  });
}

}  // namespace
}  // namespace framelane::stand_in

using namespace framelane::stand_in;
using Lock = std::unique_lock<std::mutex>;

void framelane_cuda_host_body(const void* kernel, std::size_t body_bytes,
                              framelane::cuda::HostBody run, dim3 block) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  Kernel& known = s.kernels[kernel];
  known.body_bytes = body_bytes;
  known.run = run;
  known.block = block;
}

extern "C" {

// --- devices

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

// There is no driver to reach behind this runtime, whatever is installed.
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
#else
cudaError_t cudaGetDriverEntryPoint(const char*, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* found) {
#endif
  return entry("cudaGetDriverEntryPoint", [&](State&, Lock&) {
    *function = nullptr;
    *found = cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return entry("cudaDriverGetVersion", [&](State& s, Lock&) {
    *version = s.driver_version;
    return cudaSuccess;
  });
}

// --- errors

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

// --- streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return entry("cudaStreamCreateWithFlags", [&](State& s, Lock&) {
    // A stream that waits for the default one is not what framelane uses.
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    auto created = std::make_shared<Stream>();
    created->device = current_device;
    created->number = s.streams_created++;
    *stream = reinterpret_cast<cudaStream_t>(created.get());
    s.streams.emplace(*stream, created);
    serve(created);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return releasing_entry("cudaStreamDestroy", [&](State& s, Lock&) {
    return on(s.streams, stream, [&](const std::shared_ptr<Stream>& found) {
      found->closing = true;  // its thread ends when the queue is empty
      s.changed.notify_all();
      s.streams.erase(stream);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return entry("cudaStreamQuery", [&](State& s, Lock&) {
    return on(s.streams, stream, [](const std::shared_ptr<Stream>& found) {
      return found->idle() ? cudaSuccess : cudaErrorNotReady;
    });
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return entry("cudaStreamSynchronize", [&](State& s, Lock& lock) {
    return on(s.streams, stream, [&](std::shared_ptr<Stream> found) {
      if (!s.blocking_devices.contains(found->device)) ++s.spinning_waits;
      return wait(s, lock, [&] { return found->idle(); });
    });
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return entry("cudaStreamWaitEvent", [&](State& s, Lock&) {
    return on(s.events, event, [&](const std::shared_ptr<Event>& found) {
      // What the event stands for now; recording it again changes nothing for this wait.
      const std::uint64_t until = found->recorded;
      return enqueue(s, stream, {nullptr, [found, until] { return found->completed >= until; }});
    });
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return entry("cudaLaunchHostFunc", [&](State& s, Lock&) {
    return enqueue(s, stream, {[function, data] { function(data); }, nullptr});
  });
}

// --- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return entry("cudaEventCreateWithFlags", [&](State& s, Lock&) {
    auto created = std::make_shared<Event>();
    created->device = current_device;
    created->timed = (flags & cudaEventDisableTiming) == 0;
    created->blocking = (flags & cudaEventBlockingSync) != 0;
    *event = reinterpret_cast<cudaEvent_t>(created.get());
    s.events.emplace(*event, std::move(created));
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return releasing_entry("cudaEventDestroy", [&](State& s, Lock&) {
    return on(s.events, event, [&](const std::shared_ptr<Event>&) {
      s.events.erase(event);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return entry("cudaEventRecord", [&](State& s, Lock&) {
    return on(s.events, event, [&](const std::shared_ptr<Event>& found) {
      const std::uint64_t record = found->recorded + 1;
      const cudaError_t error = enqueue(s, stream,
                                        {[&s, found, record] {
                                           const std::scoped_lock lock(s.mutex);
                                           found->completed = std::max(found->completed, record);
                                           found->time = Clock::now();
                                         },
                                         nullptr});
      if (error == cudaSuccess) found->recorded = record;
      return error;
    });
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return entry("cudaEventQuery", [&](State& s, Lock&) {
    return on(s.events, event, [](const std::shared_ptr<Event>& found) {
      return found->completed >= found->recorded ? cudaSuccess : cudaErrorNotReady;
    });
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return entry("cudaEventSynchronize", [&](State& s, Lock& lock) {
    return on(s.events, event, [&](std::shared_ptr<Event> found) {
      if (!found->blocking) ++s.spinning_waits;
      const std::uint64_t until = found->recorded;
      return wait(s, lock, [&] { return found->completed >= until; });
    });
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return entry("cudaEventElapsedTime", [&](State& s, Lock&) {
    return on(s.events, from, [&](const std::shared_ptr<Event>& begin) {
      return on(s.events, to, [&](const std::shared_ptr<Event>& end) {
        for (const Event* event : {begin.get(), end.get()}) {
          if (!event->timed || event->recorded == 0) return cudaErrorInvalidResourceHandle;
          if (event->completed < event->recorded) return cudaErrorNotReady;
        }
        if (end->time < begin->time) ++s.backward_times;
        *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
        return cudaSuccess;
      });
    });
  });
}

// --- memory

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return entry("cudaMalloc", [&](State& s, Lock&) { return allocate(s, memory, bytes, true); });
}

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return entry("cudaMallocAsync", [&](State& s, Lock&) {
    if (!s.streams.contains(stream)) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = allocate(s, memory, bytes, bytes == 0);
    if (error != cudaSuccess || bytes == 0) return error;
    const auto there = s.allocations.at(reinterpret_cast<std::uintptr_t>(*memory)).there;
    return enqueue(s, stream,
                   {[&s, there] {
                      const std::scoped_lock lock(s.mutex);
                      *there = true;
                    },
                    nullptr});
  });
}

cudaError_t cudaFree(void* memory) {
  return releasing_entry("cudaFree", [&](State& s, Lock& lock) {
    if (memory == nullptr) return cudaSuccess;
    const auto found = s.allocations.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == s.allocations.end()) return cudaErrorInvalidValue;
    // As on a GPU, all work on the device comes first.
    const cudaError_t error = wait(s, lock, [&] {
      return std::all_of(s.streams.begin(), s.streams.end(), [&](const auto& entry) {
        return entry.second->device != found->second.device || entry.second->idle();
      });
    });
    deallocate(s, memory);
    return error;
  });
}

// At once, so that whatever still uses the memory is found. Nothing waits.
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return releasing_entry("cudaFreeAsync", [&](State& s, Lock&) {
    if (!s.allocations.contains(reinterpret_cast<std::uintptr_t>(memory))) {
      return cudaErrorInvalidValue;
    }
    return on(s.streams, stream, [&](const std::shared_ptr<Stream>&) {
      deallocate(s, memory);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind, stream);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy_2d("cudaMemcpyAsync", to, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return entry("cudaMemsetAsync", [&](State& s, Lock&) {
    if (s.allocation_of(memory, bytes) == nullptr) return cudaErrorInvalidValue;
    return enqueue(s, stream, {[=] { std::memset(memory, value, bytes); }, nullptr});
  });
}

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  return entry("cudaHostRegister", [&](State& s, Lock&) {
    if (memory == nullptr || bytes == 0) return cudaErrorInvalidValue;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    for (const auto& [other, size] : s.registered) {
      if (begin < other + size && other < begin + bytes)
        return cudaErrorHostMemoryAlreadyRegistered;
    }
    s.registered[begin] = bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return releasing_entry("cudaHostUnregister", [&](State& s, Lock& lock) {
    // As on a GPU, what was queued before comes first.
    std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> before;
    for (const auto& [handle, stream] : s.streams) before.emplace_back(stream, stream->queued);
    wait(s, lock, [&before] {
      return std::all_of(before.begin(), before.end(),
                         [](const auto& entry) { return entry.first->through >= entry.second; });
    });
    return s.registered.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1
               ? cudaSuccess
               : cudaErrorHostMemoryNotRegistered;
  });
}

// --- launches

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return entry("cudaFuncGetAttributes", [&](State& s, Lock&) {
    const auto found = s.kernels.find(kernel);
    if (found == s.kernels.end()) return cudaErrorInvalidDeviceFunction;
    *attributes = {};
    attributes->maxThreadsPerBlock = framelane::cuda::kBlockThreads;
    found->second.loaded = true;
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** parameters,
                             std::size_t, cudaStream_t stream) {
  return launch(kernel, grid, block, parameters, stream);
}

// What <<<>>> becomes, and what nvcc puts into every object with kernels. A kernel's handle is its
// entry point here.
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     CUstream_st* stream) {
  call_configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
  if (call_configurations.empty()) return cudaErrorInvalidConfiguration;
  const CallConfiguration top = call_configurations.back();
  call_configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* kernel) {
  *handle = static_cast<cudaKernel_t>(const_cast<void*>(kernel));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** parameters,
                               std::size_t, cudaStream_t stream) {
  return launch(kernel, grid, block, parameters, stream);
}

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void**, const char* kernel, char*, const char*, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.kernels.try_emplace(kernel);
}

char __cudaInitModule(void**) { return 1; }

}  // extern "C"
