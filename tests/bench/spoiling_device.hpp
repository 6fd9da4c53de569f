#pragma once

#include <memory>
#include <utility>

#include "pipeline/cpu_stage.hpp"

namespace framelane::bench {

/// A device whose results end in a wrong byte.
class SpoilingDevice : public CpuDevice {
 public:
  SpoilingDevice() : CpuDevice(1) {}
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    return std::make_unique<SpoilingStage>(CpuDevice::make_stage(stats, slices));
  }

 private:
  class SpoilingStage : public Stage {
   public:
    explicit SpoilingStage(std::unique_ptr<Stage> stage) : stage_(std::move(stage)) {}
    PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory,
                    bool analyse) override {
      return stage_->prepare(conversions, memory, analyse);
    }
    void submit(FrameJob& job) override { stage_->submit(job); }
    Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override {
      const Wait result = stage_->wait(job, stop, deadline);
      if (result == Wait::kReady) job.outputs[0].target.image.row(1, 11)[35] ^= 1;
      return result;
    }

   private:
    const std::unique_ptr<Stage> stage_;
  };
};

}  // namespace framelane::bench
