#include "pipeline/stage/cuda/cuda_context.hpp"

#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// Waiting threads sleep, and FFmpeg's decoders share only a context that has this flag.
int prepared(int ordinal) {
  cuda::check(cudaInitDevice(ordinal, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid),
              "cudaInitDevice");
  cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
  return ordinal;
}

}  // namespace

CudaContext::CudaContext(int ordinal)
    : name("cuda:" + std::to_string(prepared(ordinal))), ordinal_(ordinal) {}

void CudaContext::make_current() const { cuda::check(cudaSetDevice(ordinal_), "cudaSetDevice"); }

std::string CudaContext::free_memory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  try_make_current();
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return "an unknown amount free";
  return std::to_string(free >> 20) + " MiB free";
}

void CudaContext::lose(const std::string& reason) {
  if (lost_.exchange(true)) return;
  cuda::stop_reports();
  log::error("{} is lost: {}; its feeds go on on the CPU, until framelane is started again", name,
             reason);
}

void CudaContext::failed(const std::string& who, const CudaError& error) {
  // An error that breaks the context is every later call's result; others are of one call.
  try_make_current();
  const cudaError_t answer = cudaStreamQuery(upload_stream_.get());
  if (answer != cudaSuccess && answer != cudaErrorNotReady) {
    lose(who + ": " + error.what());
  } else if (!lost_) {
    log::error("{}: {}; {} goes on", who, error.what(), name);
  }
}

std::chrono::nanoseconds CudaContext::account(Engine engine, DeviceClock::Clock::time_point from,
                                              DeviceClock::Clock::time_point to,
                                              EngineMeters& lane) {
  DeviceClock::Clock::time_point& last = last_end_[index_of(engine)];
  const auto free_from = std::max(from, last);
  // Jobs of different feeds may be booked in another order than they were done: what ended before
  // another that is booked has no time of its own left, but it took some.
  if (last < to) from = free_from;
  last = std::max(last, to);
  lane.add(engine, free_from, to);
  busy.add(engine, free_from, to);
  return std::max(to - from, DeviceClock::Clock::duration(0));
}

}  // namespace framelane
