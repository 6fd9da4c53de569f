#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/stage/device.hpp"

namespace framelane {

/// Forwards to another device. Tests override single functions.
class DeviceWrapper : public Device {
 public:
  explicit DeviceWrapper(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  const std::string& name() const override { return device_->name(); }
  const std::string& model() const override { return device_->model(); }
  const std::string& uuid() const override { return device_->uuid(); }
  bool has_copy_engines() const override { return device_->has_copy_engines(); }
  std::size_t memory_bytes() const override { return device_->memory_bytes(); }
  bool lost() const override { return device_->lost(); }
  const EngineMeters& busy() const override { return device_->busy(); }
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    return device_->make_stage(stats, slices);
  }

 protected:
  const std::shared_ptr<Device> device_;
};

}  // namespace framelane
