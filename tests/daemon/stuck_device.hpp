#pragma once

#include <semaphore>

#include "pipeline/device.hpp"

namespace framelane {

/// The CPU, but whoever wants a stage of it waits until it is let go: the supervisor's loop, when a
/// feed starts.
class StuckDevice : public Device {
 public:
  void let_go() { gate_.release(); }
  const std::string& name() const override { return cpu_->name(); }
  const std::string& model() const override { return cpu_->model(); }
  const std::string& uuid() const override { return cpu_->uuid(); }
  bool has_copy_engines() const override { return false; }
  std::size_t memory_bytes() const override { return 0; }
  bool lost() const override { return false; }
  const EngineMeters& busy() const override { return cpu_->busy(); }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    gate_.acquire();
    gate_.release();
    return cpu_->make_stage(stats, slices);
  }

 private:
  const std::shared_ptr<Device> cpu_ = make_cpu_device();
  std::binary_semaphore gate_{0};
};

}  // namespace framelane
