#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "pipeline/stage/cpu_stage.hpp"

namespace framelane::bench {

/// A device whose results have a wrong byte, or whose luma is counted wrongly.
class SpoilingDevice : public CpuDevice {
 public:
  enum class What { kByte, kLuma };
  explicit SpoilingDevice(What what = What::kByte) : CpuDevice(1), what_(what) {}
  std::unique_ptr<Stage> make_stage(FeedStats& stats, std::optional<int> slices) override {
    return std::make_unique<SpoilingStage>(CpuDevice::make_stage(stats, slices), what_);
  }

 private:
  class SpoilingStage : public Stage {
   public:
    SpoilingStage(std::unique_ptr<Stage> stage, What what)
        : stage_(std::move(stage)), what_(what) {}
    PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory, bool analyse,
                    std::span<const FrameMemory> targets,
                    std::shared_ptr<const PictureMask> mask) override {
      return stage_->prepare(conversions, memory, analyse, targets, std::move(mask));
    }
    void submit(FrameJob& job) override { stage_->submit(job); }
    Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override {
      const Wait result = stage_->wait(job, stop, deadline);
      if (result != Wait::kReady) return result;
      if (what_ == What::kByte) {  // each encode's thread comes here; chroma is never 0
        std::atomic_ref(job.outputs[0].target.image.row(1, 11)[35]) = 0;
      }
      if (what_ == What::kLuma) ++job.luma.counts[17];
      return result;
    }

   private:
    const std::unique_ptr<Stage> stage_;
    const What what_;
  };

  const What what_;
};

}  // namespace framelane::bench
