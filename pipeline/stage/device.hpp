#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/measure/engine_meters.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Something that converts frames: the CPU (and, with the CUDA backend, each GPU). Shared by every
/// feed that runs on it; owns what the feeds share. Outlives their stages. All of it may be called
/// from any thread.
class Device {
 public:
  virtual ~Device() = default;

  /// "cpu" or "cuda:N": the value of the `device` label.
  virtual const std::string& name() const = 0;
  /// For people: the processor's or the GPU's model name.
  virtual const std::string& model() const = 0;
  /// A GPU's UUID as nvidia-smi writes it; empty for the CPU.
  virtual const std::string& uuid() const = 0;
  /// True for a GPU: frames are copied to it and back. The CPU has only Engine::kKernel.
  virtual bool has_copy_engines() const = 0;
  /// What feeds hold of the GPU's own memory; 0 for the CPU.
  virtual std::size_t memory_bytes() const = 0;
  /// A GPU that failed stays lost for this process; its feeds go on elsewhere.
  virtual bool lost() const = 0;
  /// For who finds that a call on it does not come to an end: from now on it is lost. Any thread.
  virtual void lose(const std::string& /*reason*/) {}
  /// Where feeds go on once this device is lost; null for the CPU.
  virtual std::shared_ptr<const Device> fallback() const { return nullptr; }
  /// The union of all feeds' work on this device.
  virtual const EngineMeters& busy() const = 0;

  /// One feed's stage on this device, with `stats.lanes().size()` lanes. `slices`: into how many
  /// row ranges a frame's upload is cut, for latency; nothing: as its size suggests. The CPU does
  /// not slice. A stage that runs elsewhere than here names that device in `stats`.
  virtual std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) = 0;
};

/// The CPU with one worker thread per processor.
std::shared_ptr<Device> make_cpu_device();

}  // namespace framelane
