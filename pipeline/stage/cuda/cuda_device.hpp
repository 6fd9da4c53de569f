#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/stage/cuda/completion_thread.hpp"
#include "pipeline/stage/cuda/cuda_context.hpp"
#include "pipeline/stage/cuda/gpu_registrar.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {

/// The UUID as nvidia-smi writes it: "GPU-" and sixteen bytes in five groups of hex digits.
std::string gpu_uuid_text(const cudaUUID_t& uuid);

/// One GPU. While it exists, all memory of frames is registered with CUDA. A GPU that fails stays
/// lost, and its feeds' jobs, including those in flight, run on the fallback. A process has at most
/// one CudaDevice for each GPU at a time, and all share one registrar.
class CudaDevice final : public Device, public std::enable_shared_from_this<CudaDevice> {
 public:
  /// A job that runs for longer may hang. Windows waits as long (TdrDelay).
  static constexpr std::chrono::milliseconds kHungAfter{2000};

  /// `hung_after`: see CompletionThread; tests pass less. Throws CudaError if the GPU cannot be
  /// used, FeedError(kMemory) if the frame buffers that exist already cannot be registered.
  /// `registrar`: null makes one.
  static std::shared_ptr<CudaDevice> open(int ordinal, std::shared_ptr<Device> fallback,
                                          std::chrono::milliseconds hung_after = kHungAfter,
                                          std::shared_ptr<GpuRegistrar> registrar = nullptr);

  const std::string& name() const override { return context_->name(); }
  const std::string& model() const override { return model_; }
  const std::string& uuid() const override { return uuid_; }
  bool has_copy_engines() const override { return true; }
  std::size_t memory_bytes() const override { return context_->memory_bytes(); }
  std::optional<std::size_t> free_memory_bytes() override;
  bool lost() const override { return context_->lost(); }
  /// Not the first time if another GPU hangs already: the call may wait for that one, because
  /// memory is registered for all of them.
  void lose(const std::string& reason) override {
    if (!registrar_->another_hangs(*context_) || spared_.exchange(true))
      context_->lose(reason, CudaContext::Loss::kStuckCall);
  }
  const EngineMeters& busy() const override { return context_->busy(); }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override;

  const std::shared_ptr<CudaContext>& context() const { return context_; }
  std::shared_ptr<const Device> fallback() const override { return fallback_; }
  Device& cpu() { return *fallback_; }
  CompletionThread& completion() { return completion_; }

 private:
  CudaDevice(int ordinal, std::shared_ptr<Device> fallback, std::chrono::milliseconds hung_after,
             std::shared_ptr<GpuRegistrar> registrar);

  const std::shared_ptr<CudaContext> context_;
  const std::shared_ptr<Device> fallback_;
  const std::shared_ptr<GpuRegistrar> registrar_;
  std::string model_;
  std::string uuid_;
  std::atomic<bool> spared_{false};  // see lose()
  CompletionThread completion_;
};

}  // namespace framelane
