#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "pipeline/frames/host_registration.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"

namespace framelane {

/// The process's HostRegistrar while it exists: registers the memory of frames with CUDA, once, for
/// all GPUs. At most one at a time. Any thread.
///
/// CUDA registers memory in the context that is current, for all contexts (portable), and only a
/// hang of that GPU blocks its unregistering (tried with two H100, docs/benchmarks.md). So the
/// first GPU that is not lost registers, and what a lost one has registered may stay registered.
class GpuRegistrar final : private HostRegistrar {
 public:
  GpuRegistrar() = default;
  ~GpuRegistrar() override { set_host_registrar(nullptr); }
  GpuRegistrar(const GpuRegistrar&) = delete;
  GpuRegistrar& operator=(const GpuRegistrar&) = delete;

  /// Takes another GPU. With the first one all memory that exists is registered. `read_only`:
  /// whether the GPU can register memory that may only be read. Throws CudaError or
  /// FeedError(kMemory), then the GPU is not taken.
  void take(std::shared_ptr<CudaContext> gpu, bool read_only);
  /// True if another GPU than this one hangs.
  bool another_hangs(const CudaContext& than);

 private:
  struct Gpu {
    std::shared_ptr<CudaContext> context;
    bool read_only = false;
  };
  // Of HostRegistrar.
  void add(const std::uint8_t* data, std::size_t bytes, HostAccess access) override;
  bool remove(const std::uint8_t* data) noexcept override;
  const Gpu* live_gpu();
  [[noreturn]] void refuse(const Gpu& gpu, std::size_t bytes, const CudaError& error);

  std::mutex mutex_;                              // not held in CUDA calls, which may hang
  std::vector<std::unique_ptr<const Gpu>> gpus_;  // guarded by mutex_
  std::map<const std::uint8_t*, const Gpu*> registered_by_;  // guarded by mutex_
  std::atomic<bool> opened_{false};  // before, add() throws CudaError: take() reports it
  std::atomic<bool> said_read_only_{false};
};

}  // namespace framelane
