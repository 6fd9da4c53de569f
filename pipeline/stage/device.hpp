#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/measure/engine_meters.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// Something that converts frames: the CPU or, with the CUDA backend, a GPU. All feeds that run on
/// it share it, and it owns what they share. Must outlive their stages. Any thread may call.
class Device {
 public:
  virtual ~Device() = default;

  /// "cpu" or "cuda:N": the value of the metrics' `device` label.
  virtual const std::string& name() const = 0;
  /// The model name of the processor or the GPU, for people.
  virtual const std::string& model() const = 0;
  /// A GPU's UUID, as nvidia-smi writes it; empty for the CPU.
  virtual const std::string& uuid() const = 0;
  /// True for a GPU, to which frames are copied and back. The CPU has only Engine::kKernel.
  virtual bool has_copy_engines() const = 0;
  /// Bytes of the GPU's own memory that feeds have allocated; 0 for the CPU.
  virtual std::size_t memory_bytes() const = 0;
  /// Bytes of the GPU's memory that nobody uses. Nothing if they are not known, for the CPU, or if
  /// the GPU turns out to be lost. Asks the driver.
  virtual std::optional<std::size_t> free_memory_bytes() { return std::nullopt; }
  /// True if the GPU has failed. It stays lost until the process ends; its feeds use fallback().
  virtual bool lost() const = 0;
  /// Declares the device lost, because a call on it does not return. `reason` is logged.
  virtual void lose(const std::string& /*reason*/) {}
  /// Where feeds run once this device is lost; null for the CPU.
  virtual std::shared_ptr<const Device> fallback() const { return nullptr; }
  /// When this device was busy with the work of any feed.
  virtual const EngineMeters& busy() const = 0;

  /// Makes one feed's stage, with `stats.lanes().size()` lanes. `slices`: the number of row ranges
  /// that a frame's upload is cut in, for latency; nothing: chosen by the frame's size. The CPU
  /// does not slice. A stage that runs on another device than this one names that device in
  /// `stats`.
  virtual std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) = 0;
};

/// The CPU, with one worker thread per processor.
std::shared_ptr<Device> make_cpu_device();

}  // namespace framelane
