#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/stage/device.hpp"

namespace framelane {

/// A GPU whose meters a test can set.
class MeterGpu : public Device {
 public:
  const std::string& name() const override { return name_; }
  const std::string& model() const override { return model_; }
  const std::string& uuid() const override { return uuid_; }
  bool has_copy_engines() const override { return true; }
  std::size_t memory_bytes() const override { return 4096; }
  bool lost() const override { return lost_; }
  const EngineMeters& busy() const override { return busy_; }
  std::unique_ptr<Stage> make_stage(FeedStats&, std::optional<int>) override { return nullptr; }

  const std::string name_ = "cuda:0";
  const std::string model_ = "GPU";
  const std::string uuid_ = "GPU-1234";
  EngineMeters busy_;
  bool lost_ = false;
};

}  // namespace framelane
