#include "tests/cuda_runtime/state.hpp"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

namespace framelane::stand_in {
namespace {

thread_local bool is_inside = false;

void run_operations(State& s, Stream& stream) {
  const Inside inside_stream;
  std::unique_lock lock(s.mutex);
  const auto may_start = [&] {
    if (s.lost) return true;
    const bool held = stream.held || s.hold_all;
    return !held && (!stream.queue.front().ready || stream.queue.front().ready());
  };
  while (true) {
    s.changed.wait(lock, [&] { return stream.queue.empty() ? stream.closing : may_start(); });
    if (stream.queue.empty()) break;
    const Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    if (!s.lost && operation.run) {
      stream.busy = true;
      ++s.running;
      lock.unlock();
      operation.run();
      lock.lock();
      --s.running;
      stream.busy = false;
    }
    ++stream.through;
    s.changed.notify_all();
  }
  --s.workers;
  s.changed.notify_all();
}

// In a map of ranges by their begin: the last that begins at or before `address`.
template <typename Map>
typename Map::const_iterator range_at(const Map& ranges, std::uintptr_t address) {
  const auto next = ranges.upper_bound(address);
  return next == ranges.begin() ? ranges.end() : std::prev(next);
}

}  // namespace

Inside::Inside() : before_(std::exchange(is_inside, true)) {}
Inside::~Inside() { is_inside = before_; }

State& state() {
  static State& instance = *new State;
  return instance;
}

void serve(const std::shared_ptr<Stream>& stream) {
  State& s = state();
  ++s.workers;
  // Detached, because destroying a stream does not wait for it. Whoever has to wait uses `workers`.
  std::thread([&s, stream] { run_operations(s, *stream); }).detach();
}

cudaError_t State::enter(std::string_view function, std::unique_lock<std::mutex>& lock) {
  ++calls.try_emplace(std::string(function)).first->second;
  if (loss.calls_left > 0 && --loss.calls_left == 0) {
    lost = loss.error;
    changed.notify_all();
  }
  if (lost) changed.wait(lock, [this] { return running == 0; });
  if (const auto failure = failures.find(function); failure != failures.end()) {
    if (--failure->second.calls_left == 0) {
      const cudaError_t error = failure->second.error;
      failures.erase(failure);
      return error;
    }
  }
  return lost.value_or(cudaSuccess);
}

bool State::skip(std::string_view function) {
  const auto found = skips.find(function);
  if (found == skips.end()) return false;
  if (found->second.calls_before > 0) {
    --found->second.calls_before;
    return false;
  }
  if (--found->second.calls_left == 0) skips.erase(found);
  return true;
}

const Allocation* State::allocation_of(const void* address, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto found = range_at(allocations, at);
  if (found == allocations.end() || at + bytes > found->first + found->second.bytes) return nullptr;
  return &found->second;
}

const State::Registration* State::registration_of(const void* address, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto found = range_at(registered, at);
  if (found == registered.end() || at + bytes > found->first + found->second.bytes) return nullptr;
  return &found->second;
}

std::size_t State::used(int device) const {
  std::size_t sum = 0;
  for (const auto& [address, allocation] : allocations) {
    if (allocation.device == device) sum += allocation.bytes;
  }
  return sum;
}

bool present() { return true; }
bool inside() { return is_inside; }

void reset() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.hold_all = false;
  for (auto& [handle, stream] : s.streams) stream->held = false;
  s.changed.notify_all();
  s.changed.wait(lock, [&] {
    for (const auto& [handle, stream] : s.streams) {
      if (!stream->idle()) return false;
    }
    return s.workers == static_cast<int>(s.streams.size());
  });
  s.calls.clear();
  s.failures.clear();
  s.skips.clear();
  s.lost.reset();
  s.loss = {};
  s.spoilt_from = 0;
  s.pageable_copies = 0;
  s.overruns = 0;
  s.backward_times = 0;
  s.premature_copies = 0;
  s.lazy_loads = 0;
  s.spinning_waits = 0;
  s.misplaced_calls = 0;
  s.blocking_devices.clear();
  for (auto& [entry, kernel] : s.kernels) kernel.loaded = false;
  s.device_count = 1;
  s.driver_version = CUDART_VERSION;
  s.read_only_registration = true;
  s.memory = std::size_t{1} << 30;
}

void fail_nth_call(std::string_view function, int n, cudaError_t error) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.failures.insert_or_assign(std::string(function), Failure{n, error});
}

void skip_calls(std::string_view function, int n, int count) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.skips.insert_or_assign(std::string(function), Skips{n - 1, count});
}

void lose_device(cudaError_t error) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.lost = error;
  s.changed.notify_all();
  s.changed.wait(lock, [&] { return s.running == 0; });
}

void lose_device_at_call(int n, cudaError_t error) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.loss = {n, error};
}

void spoil_downloads(std::size_t at_least) { state().spoilt_from = at_least; }

void hold() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.hold_all = true;
}

void hold(cudaStream_t stream) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.streams.at(stream)->held = true;
}

void release() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.hold_all = false;
  for (auto& [handle, stream] : s.streams) stream->held = false;
  s.changed.notify_all();
}

void release(cudaStream_t stream) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.streams.at(stream)->held = false;
  s.changed.notify_all();
}

std::vector<cudaStream_t> streams() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  std::vector<cudaStream_t> handles;
  for (const auto& [handle, stream] : s.streams) {
    if (handle != cudaStreamLegacy) handles.push_back(handle);
  }
  std::sort(handles.begin(), handles.end(), [&s](cudaStream_t a, cudaStream_t b) {
    return s.streams.at(a)->number < s.streams.at(b)->number;
  });
  return handles;
}

int calls(std::string_view function) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  const auto found = s.calls.find(function);
  return found == s.calls.end() ? 0 : found->second;
}

std::vector<std::string> called_functions() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  std::vector<std::string> names;
  for (const auto& [name, count] : s.calls) names.push_back(name);
  return names;
}

int pageable_copies() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.pageable_copies;
}

Live live() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  Live result{static_cast<int>(s.streams.size() - s.streams.count(cudaStreamLegacy)),
              static_cast<int>(s.events.size()), static_cast<int>(s.allocations.size()),
              static_cast<int>(s.registered.size()), 0};
  for (const auto& [address, allocation] : s.allocations) result.bytes += allocation.bytes;
  return result;
}

void forget_registrations() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.registered.clear();
}

int overruns() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.overruns;
}

int backward_times() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.backward_times;
}

int premature_copies() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.premature_copies;
}

int lazy_loads() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.lazy_loads;
}

int spinning_waits() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.spinning_waits;
}

int misplaced_calls() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.misplaced_calls;
}

void set_device_count(int count) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.device_count = count;
}

void set_read_only_registration(bool supported) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.read_only_registration = supported;
}

void set_driver_version(int version) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.driver_version = version;
}

void set_memory(std::size_t bytes_per_device) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.memory = bytes_per_device;
}

}  // namespace framelane::stand_in
