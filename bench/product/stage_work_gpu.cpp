#include "bench/product/stage_work_gpu.hpp"

#include "bench/harness/gpu_part.hpp"
#include "bench/product/stage_baselines.hpp"
#include "bench/product/stage_ceilings.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"

namespace framelane::bench {
namespace {

class CudaContenders final : public GpuContenders {
 public:
  CudaContenders(const Session& session, const Work& work, std::span<const PooledImage> frames,
                 const StageFrames& made, double turn)
      : work_(work),
        made_(made),
        turn_(turn),
        ceilings_(context_of(session), work.conversions, frames, session.stop) {
    if (work.with_others && has_usual_ways(work)) {
      baselines_ =
          std::make_unique<StageBaselines>(context_of(session), work.conversions.front(), frames);
    }
  }

  Contender kernels() override { return ceiling(kKernels, &StageCeilings::kernel); }
  std::vector<Contender> ceilings() override {
    std::vector<Contender> result{ceiling(kUploads, &StageCeilings::upload),
                                  ceiling(kBothWays, &StageCeilings::duplex)};
    if (work_.with_others) {
      result.push_back(ceiling(kDownloads, &StageCeilings::download));
      result.push_back(kernels());
    }
    return result;
  }
  std::vector<Contender> usual_ways() override {
    if (baselines_ == nullptr) return {};
    return {baseline(kPageable, &StageBaselines::pageable_default_stream),
            baseline(kPinned, &StageBaselines::pinned_default_stream),
            baseline(kEightStreams, &StageBaselines::eight_streams)};
  }

 private:
  Row row(const char* name) const {
    return {.name = name,
            .parameters = parameters_of(work_.conversions),
            .bytes = source_bytes(work_.conversions)};
  }
  Contender ceiling(const char* name, double (StageCeilings::*rate)(double) const) {
    return {row(name), {}, [=, this] { return 1e3 / (ceilings_.*rate)(turn_); }, {}};
  }
  Contender baseline(const char* name, void (StageBaselines::*convert)()) {
    return {row(name), [this] { baselines_->spoil_results(); },
            [=, this] { return milliseconds([&] { (*baselines_.*convert)(); }); },
            [this] {
              const PlainImage& expected = made_.results(baselines_->frame()).front();
              return first_difference(as_const(expected.image), baselines_->result());
            }};
  }

  const Work& work_;
  const StageFrames& made_;
  const double turn_;
  StageCeilings ceilings_;
  std::unique_ptr<StageBaselines> baselines_;  // of a work with_others
};

}  // namespace

std::unique_ptr<GpuContenders> make_gpu_contenders(const Session& session, const Work& work,
                                                   std::span<const PooledImage> frames,
                                                   const StageFrames& made, double turn) {
  if (session.gpu == nullptr) return nullptr;
  return std::make_unique<CudaContenders>(session, work, frames, made, turn);
}

std::size_t device_bytes(std::span<const Conversion> conversions, int lanes) {
  return plan_bytes(conversions, FrameMemory::kHost, static_cast<std::size_t>(lanes));
}
std::size_t free_device_bytes(const Session& session) {
  std::size_t free = 0, total = 0;
  context_of(session).make_current();
  cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

}  // namespace framelane::bench
