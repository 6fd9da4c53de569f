#pragma once

#include <semaphore>

#include "tests/pipeline/stage/device_wrapper.hpp"

namespace framelane {

/// The CPU, but make_stage() blocks until let_go(). The supervisor's loop calls make_stage() when a
/// feed starts, and so it gets stuck.
class StuckDevice : public DeviceWrapper {
 public:
  StuckDevice() : DeviceWrapper(make_cpu_device()) {}
  void let_go() { gate_.release(); }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    gate_.acquire();
    gate_.release();
    return device_->make_stage(stats, slices);
  }

 private:
  std::binary_semaphore gate_{0};
};

}  // namespace framelane
