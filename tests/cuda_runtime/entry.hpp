#pragma once

#include <cuda_runtime_api.h>

#include <mutex>

#include "tests/cuda_runtime/state.hpp"

// What the entry points of the stand-in runtime have in common.

namespace framelane::stand_in {

using Lock = std::unique_lock<std::mutex>;

inline thread_local cudaError_t last_error = cudaSuccess;
inline thread_local int current_device = 0;

inline cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// The frame of nearly every entry point: counts the call, makes it fail or skips it if a test
/// asked for that, and otherwise runs `body` with the lock held.
template <typename Body>
cudaError_t entry(const char* function, Body body) {
  const Inside in_call;
  State& s = state();
  Lock lock(s.mutex);
  if (const cudaError_t error = s.enter(function, lock)) return result(error);
  if (s.skip(function)) return cudaSuccess;
  return result(body(s, lock));
}

/// The same for functions that free or destroy, which do so even if they return an error.
template <typename Body>
cudaError_t releasing_entry(const char* function, Body body) {
  const Inside in_call;
  State& s = state();
  Lock lock(s.mutex);
  const cudaError_t refused = s.enter(function, lock);
  const cudaError_t done = body(s, lock);
  return result(refused != cudaSuccess ? refused : done);
}

/// Calls with_object with the object that `handle` names. Returns an error if no such object is
/// alive; null, the default stream, is one that never is.
template <typename Map, typename WithObject>
cudaError_t on(Map& map, typename Map::key_type handle, WithObject with_object) {
  const auto found = map.find(handle);
  if (found == map.end()) return cudaErrorInvalidResourceHandle;
  // Once the device is lost, cudaSetDevice fails too.
  if (found->second->device != current_device && !state().lost) ++state().misplaced_calls;
  return with_object(found->second);
}

/// Waits until `done` holds, or until the device is lost and nothing runs on it any more.
template <typename Done>
cudaError_t wait(State& s, Lock& lock, Done done) {
  s.changed.wait(lock, [&] { return s.lost ? s.running == 0 : done(); });
  return s.lost.value_or(cudaSuccess);
}

/// Queues an operation on a stream. Requires the lock.
cudaError_t enqueue(State& s, cudaStream_t stream, Operation operation);

}  // namespace framelane::stand_in
