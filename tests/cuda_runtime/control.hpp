#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Steers and observes the stand-in CUDA runtime, which tests link instead of NVIDIA's. In it
/// "device" memory is host memory, every stream is a thread, and a launch runs the kernel's own
/// body on the host. It has only the calls that framelane uses: a call that framelane must not make
/// (a device-wide wait, the null stream) does not link, or fails. The default stream exists as
/// cudaStreamLegacy.
///
/// Any thread may call. In a build for a real GPU (FRAMELANE_GPU_TESTS) only present(),
/// inside() and reset() may be called; StandInTest skips what needs the rest.
namespace framelane::stand_in {

bool present();

/// True if the calling thread is inside one of the runtime's calls, or is a stream's thread: what
/// it allocates then is not framelane's.
bool inside();

/// Goes back to one healthy device with no failures to come and all counts 0. Releases held streams
/// and blocks until they are idle. Streams, events and memory stay alive.
void reset();

/// Makes the n-th call of the function from now (1: the next) fail. A function has at most one such
/// failure at a time. A failed call has no effect, but one that should free or destroy still does.
void fail_nth_call(std::string_view function, int n, cudaError_t error = cudaErrorUnknown);

/// Makes `count` calls of the function, from the n-th on (1: the next), return success without any
/// effect, as if the program had forgotten them. Not for functions that free or destroy.
void skip_calls(std::string_view function, int n, int count = 1);

/// From now on no queued work runs, threads that wait are woken, and every call returns `error`;
/// only freeing and destroying still take effect. Blocks until no work is running any more.
void lose_device(cudaError_t error = cudaErrorECCUncorrectable);

/// The same at the n-th call from now (1: the next) of any function.
void lose_device_at_call(int n, cudaError_t error = cudaErrorECCUncorrectable);

/// Acts as a GPU that computes wrongly: from now on every copy to the host of `at_least` bytes or
/// more has a wrong last byte.
void spoil_downloads(std::size_t at_least = 1);

/// Holds a stream, which then starts no work, as if a kernel hung. Without an argument: all
/// streams, including those that are created later.
void hold();
void hold(cudaStream_t stream);
void release();
void release(cudaStream_t stream);

/// The streams that are alive, oldest first, without the default one.
std::vector<cudaStream_t> streams();

/// Calls of the function since the last reset, including those that failed.
int calls(std::string_view function);
/// Every function called since the last reset, sorted.
std::vector<std::string> called_functions();

/// Copies from or to host memory that was not registered: on a GPU these are synchronous.
int pageable_copies();

struct Live {
  int streams = 0;
  int events = 0;
  int allocations = 0;
  int registrations = 0;
  std::size_t bytes = 0;

  friend bool operator==(const Live&, const Live&) = default;
};
/// What has been created and not destroyed.
Live live();

/// Forgets which host memory is registered: memory that framelane frees while a GPU hangs stays
/// registered until the process ends.
void forget_registrations();

/// Allocations that were written beyond their end, as seen when they were freed.
int overruns();

/// Calls that asked for the time from an event to an earlier one.
int backward_times();

/// Copies that used device memory before the stream that it was allocated on had reached the
/// allocation.
int premature_copies();

/// Kernels that were launched without being loaded by cudaFuncGetAttributes before: a GPU may lack
/// the memory for them then.
int lazy_loads();

/// Calls that would wait by spinning on a processor: for an event without cudaEventBlockingSync, or
/// for a stream of a device that was not initialised with cudaDeviceScheduleBlockingSync.
int spinning_waits();

/// Calls with a stream or an event of a device that was not the calling thread's current one.
int misplaced_calls();

void set_device_count(int count);
/// What cudaDriverGetVersion returns; 0: no driver.
void set_driver_version(int version);
void set_memory(std::size_t bytes_per_device);
/// Whether memory that may only be read can be registered. reset() allows it.
void set_read_only_registration(bool supported);

}  // namespace framelane::stand_in
