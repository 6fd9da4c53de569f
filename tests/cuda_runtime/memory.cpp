// Entry points of the stand-in runtime: memory and copies.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/cuda_runtime/entry.hpp"

namespace framelane::stand_in {
namespace {

constexpr std::size_t kAlignment = 256;  // as cudaMalloc promises
constexpr std::uint8_t kFresh = 0xCD;    // new memory is not zero
constexpr std::uint8_t kGuard = 0xFD;
// AddressSanitizer itself watches both ends of allocations, which therefore must have no guard.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kGuardBytes = 0;
#else
constexpr std::size_t kGuardBytes = 64;
#endif

// Whether both sides of a copy are where `kind` says. `to_bytes` and `from_bytes` reach from the
// first byte that it touches to the last.
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
  const State::Registration* const into = to_device ? nullptr : s.registration_of(to, to_bytes);
  if (into != nullptr && into->read_only) return cudaErrorInvalidValue;
  if ((!to_device && into == nullptr) ||
      (!from_device && s.registration_of(from, from_bytes) == nullptr)) {
    ++s.pageable_copies;
  }
  return cudaSuccess;
}

/// True if the memory at this address can be written to. Asks the kernel for an atomic "or 0",
/// which leaves the bytes as they are and fails with EFAULT where nothing may be written. It may
/// wake a thread that waits for a futex there; frame memory has none. /proc/self/maps tells it too,
/// but takes far longer to read.
bool is_writable(std::uintptr_t address) {
  auto* const word = reinterpret_cast<std::uint32_t*>(address & ~(sizeof(std::uint32_t) - 1));
  constexpr int kOrNothing = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0);
  if (::syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, 0, nullptr, word, kOrNothing) != -1) {
    return true;
  }
  if (errno == EFAULT) return false;
  std::perror("stand-in runtime: FUTEX_WAKE_OP");  // say, a sandbox that allows no futex
  std::abort();
}

cudaError_t copy_2d(const char* function, void* to, std::size_t to_pitch, const void* from,
                    std::size_t from_pitch, std::size_t width, std::size_t height,
                    cudaMemcpyKind kind, cudaStream_t stream) {
  return entry(function, [&](State& s, Lock&) {
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

cudaError_t allocate(State& s, void** memory, std::size_t bytes, int device, bool there) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > s.memory || s.used(device) > s.memory - bytes) {
    return cudaErrorMemoryAllocation;
  }
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes + kGuardBytes) != 0) {
    return cudaErrorMemoryAllocation;
  }
  std::memset(block, kFresh, bytes);
  std::memset(static_cast<std::uint8_t*>(block) + bytes, kGuard, kGuardBytes);
  s.allocations[reinterpret_cast<std::uintptr_t>(block)] = {bytes, device,
                                                            std::make_shared<bool>(there)};
  *memory = block;
  return cudaSuccess;
}

// Requires that the memory is allocated.
void deallocate(State& s, void* memory) {
  const auto found = s.allocations.find(reinterpret_cast<std::uintptr_t>(memory));
  const auto* guard = static_cast<const std::uint8_t*>(memory) + found->second.bytes;
  if (std::any_of(guard, guard + kGuardBytes, [](std::uint8_t b) { return b != kGuard; })) {
    ++s.overruns;
  }
  s.allocations.erase(found);
  std::free(memory);
}

}  // namespace
}  // namespace framelane::stand_in

using namespace framelane::stand_in;

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return entry("cudaMalloc",
               [&](State& s, Lock&) { return allocate(s, memory, bytes, current_device, true); });
}

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return entry("cudaMallocAsync", [&](State& s, Lock&) {
    const auto order = s.streams.find(stream);
    if (order == s.streams.end()) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = allocate(s, memory, bytes, order->second->device, bytes == 0);
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

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned flags) {
  return entry("cudaHostRegister", [&](State& s, Lock&) {
    if (memory == nullptr || bytes == 0) return cudaErrorInvalidValue;
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    for (const auto& [other, known] : s.registered) {
      if (begin < other + known.bytes && other < begin + bytes)
        return cudaErrorHostMemoryAlreadyRegistered;
    }
    // As on a GPU: memory that cannot be written is taken only with the flag.
    const bool read_only = (flags & cudaHostRegisterReadOnly) != 0;
    if (read_only ? !s.read_only_registration : !is_writable(begin)) return cudaErrorInvalidValue;
    s.registered[begin] = {bytes, current_device, read_only};
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return releasing_entry("cudaHostUnregister", [&](State& s, Lock& lock) {
    const auto found = s.registered.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == s.registered.end()) return cudaErrorHostMemoryNotRegistered;
    // As on a GPU, what was queued before comes first: on the one that has registered the memory.
    std::vector<std::pair<std::shared_ptr<Stream>, std::uint64_t>> before;
    for (const auto& [handle, stream] : s.streams) {
      if (stream->device == found->second.device) before.emplace_back(stream, stream->queued);
    }
    wait(s, lock, [&before] {
      return std::all_of(before.begin(), before.end(),
                         [](const auto& entry) { return entry.first->through >= entry.second; });
    });
    return s.registered.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1
               ? cudaSuccess
               : cudaErrorHostMemoryNotRegistered;
  });
}

}  // extern "C"
