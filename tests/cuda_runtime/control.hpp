#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// What tests may ask of the stand-in CUDA runtime: a runtime of our own, linked instead of
/// NVIDIA's, in which "device" memory is host memory, every stream is a thread and a launch runs
/// the kernel's own body. It has the calls that framelane uses and no others, so that a call with
/// no place here (a device-wide wait, the null stream) does not link or fails. The default stream
/// is there for who means it, as cudaStreamLegacy.
///
/// All functions are thread-safe. In a build for a real GPU (FRAMELANE_GPU_TESTS) only present(),
/// inside() and reset() may be called; StandInTest skips what needs the rest.
namespace framelane::stand_in {

bool present();

/// Whether the calling thread is in one of the runtime's calls, or is a stream's: what it allocates
/// there is not framelane's.
bool inside();

/// Back to one healthy device, no failures to come, all counts 0. Lets held streams go and waits
/// for them to finish. What is alive stays alive.
void reset();

/// Lets the n-th call from now (1 is the next) of the function fail. One failure per function is
/// remembered. A failing call has no effect, except that whatever frees or destroys still does.
void fail_nth_call(std::string_view function, int n, cudaError_t error = cudaErrorUnknown);

/// Lets `count` calls of the function, from the n-th on (1 is the next), say that they went well
/// and have no effect: as if a program had forgotten them. Not for what frees or destroys.
void skip_calls(std::string_view function, int n, int count = 1);

/// From now on no queued work runs, what waits is woken, and every call returns `error`; only
/// freeing and destroying still take effect. Returns when no work is running any more.
void lose_device(cudaError_t error = cudaErrorECCUncorrectable);

/// The same at the n-th call from now (1 is the next), whichever it is.
void lose_device_at_call(int n, cudaError_t error = cudaErrorECCUncorrectable);

/// A GPU that computes wrongly: from now on every copy back to the host, of so many bytes or more,
/// ends in a wrong one.
void spoil_downloads(std::size_t at_least = 1);

/// A held stream starts nothing, like a kernel that hangs; without an argument, every stream, also
/// those still to be created.
void hold();
void hold(cudaStream_t stream);
void release();
void release(cudaStream_t stream);

/// The streams that are alive, oldest first, without the default one.
std::vector<cudaStream_t> streams();

/// Calls since the last reset, also those that failed.
int calls(std::string_view function);
/// Every function called since the last reset, sorted.
std::vector<std::string> called_functions();

/// Copies between device and host memory that was not registered: they are synchronous on a GPU.
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

/// Forgets what host memory is registered: what is freed while a hung GPU may use it stays so, as
/// long as the process lives.
void forget_registrations();

/// Allocations behind whose end something was written, found when they were freed.
int overruns();

/// Times that were asked for from an event to an earlier one.
int backward_times();

/// Copies that ran before the stream that their device memory was allocated on had come that far.
int premature_copies();

/// Kernels that were launched without having been loaded before, by cudaFuncGetAttributes: a GPU
/// may lack the memory for it then.
int lazy_loads();

/// Calls that wait by spinning on a processor: for an event without cudaEventBlockingSync, or for a
/// stream of a device that was not made ready with cudaDeviceScheduleBlockingSync.
int spinning_waits();

/// Calls with a stream or an event of another device than the calling thread's current one.
int misplaced_calls();

void set_device_count(int count);
/// As cudaDriverGetVersion gives it; 0: no driver.
void set_driver_version(int version);
void set_memory(std::size_t bytes_per_device);

}  // namespace framelane::stand_in
