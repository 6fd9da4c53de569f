#pragma once

#include <memory>
#include <string>

#include "pipeline/busy_meter.hpp"
#include "pipeline/stage.hpp"

namespace framelane {

/// Something that converts frames: the CPU (and, with the CUDA backend, each GPU). Shared by every
/// feed that runs on it; owns what the feeds share. Outlives their stages.
class Device {
 public:
  virtual ~Device() = default;

  /// "cpu" or "cuda:N": the value of the `device` label.
  virtual const std::string& name() const = 0;
  /// For people: the processor's model name.
  virtual const std::string& model() const = 0;
  /// One feed's stage on this device, with `stats.lanes().size()` lanes. Thread-safe.
  virtual std::unique_ptr<Stage> make_stage(FeedStats& stats) = 0;
  /// The union of all conversions on this device. The CPU has one engine, "kernel".
  virtual const BusyMeter& kernel_busy() const = 0;
};

/// The CPU with one worker thread per processor.
std::shared_ptr<Device> make_cpu_device();

}  // namespace framelane
