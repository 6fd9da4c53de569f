#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kernels/cuda/host_body.hpp"
#include "tests/cuda_runtime/control.hpp"

// The inside of the stand-in runtime: one state, one lock, one condition.

namespace framelane::stand_in {

using Clock = std::chrono::steady_clock;

struct Operation {
  std::function<void()> run;
  /// True once the operation may run; called with the lock held. Empty: at once.
  std::function<bool()> ready;
};

struct Stream {
  int device = 0;
  int number = 0;  // in the order of creation
  std::deque<Operation> queue;
  bool held = false;
  bool busy = false;
  bool closing = false;
  std::uint64_t queued = 0;   // operations so far
  std::uint64_t through = 0;  // of these, those that have ended

  bool idle() const { return queue.empty() && !busy; }
};

struct Event {
  int device = 0;
  bool timed = true;
  bool blocking = false;
  std::uint64_t recorded = 0;
  std::uint64_t completed = 0;
  Clock::time_point time;
};

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  std::shared_ptr<bool> there;  // true once its stream has reached the allocation
};

struct Kernel {
  std::size_t body_bytes = 0;
  cuda::HostBody run = nullptr;
  dim3 block;
  bool loaded = false;
};

struct Failure {
  int calls_left = 0;
  cudaError_t error = cudaSuccess;
};

struct Skips {
  int calls_before = 0;
  int calls_left = 0;
};

/// Never destroyed, because static destructors of others may still call the runtime at exit.
struct State {
  std::mutex mutex;
  std::condition_variable changed;

  std::map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::map<std::uintptr_t, Allocation> allocations;  // by address
  struct Registration {
    std::size_t bytes = 0;
    int device = 0;  // that was current
    bool read_only = false;
  };
  std::map<std::uintptr_t, Registration> registered;  // by address
  std::map<const void*, Kernel> kernels;
  std::map<std::string, int, std::less<>> calls;
  std::map<std::string, Failure, std::less<>> failures;
  std::map<std::string, Skips, std::less<>> skips;
  int streams_created = 0;
  int workers = 0;  // threads of streams, including those of destroyed ones
  int running = 0;  // operations being run
  bool hold_all = false;
  std::optional<cudaError_t> lost;
  Failure loss;                             // a loss to come; calls_left is 0 if there is none
  std::atomic<std::size_t> spoilt_from{0};  // smallest copy to the host that is spoilt; 0: none
  int pageable_copies = 0;
  int overruns = 0;
  int backward_times = 0;
  int premature_copies = 0;
  int lazy_loads = 0;
  int spinning_waits = 0;
  int misplaced_calls = 0;
  std::set<int> blocking_devices;  // devices for which waiting threads sleep
  int device_count = 1;
  int driver_version = CUDART_VERSION;
  bool read_only_registration = true;
  std::size_t memory = std::size_t{1} << 30;

  /// Counts a call. Returns an error if the call is to fail. If that is because the device is lost,
  /// waits first until no work is running any more. Requires the lock.
  cudaError_t enter(std::string_view function, std::unique_lock<std::mutex>& lock);
  /// True if a call that was counted is to do nothing. Requires the lock.
  bool skip(std::string_view function);
  /// The allocation or registration that holds all of [address, address + bytes), if any.
  const Allocation* allocation_of(const void* address, std::size_t bytes) const;
  /// Null if not all of it is registered.
  const Registration* registration_of(const void* address, std::size_t bytes) const;
  std::size_t used(int device) const;
};

State& state();

/// While an object of this class exists, its thread is inside the runtime.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const bool before_;
};

/// Starts the thread that serves the stream. Requires the lock.
void serve(const std::shared_ptr<Stream>& stream);

}  // namespace framelane::stand_in
