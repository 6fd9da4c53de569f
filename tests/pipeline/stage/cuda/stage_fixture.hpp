#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "pipeline/base/failure.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "pipeline/stage/cuda/cuda_stage.hpp"
#include "tests/cuda_runtime/fixture.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane::testing {

using namespace std::chrono_literals;

inline constexpr int kPictureWidth = 130;
inline constexpr int kPictureHeight = 67;

Conversion conversion_of(PixelFormat source, PixelFormat target, int width = kPictureWidth,
                         int height = kPictureHeight);

/// Jobs of one conversion plan, each with its own random pixels, and the results that they must
/// have. Conversions that are `overlaid` get overlays, which change now and then.
class Jobs {
 public:
  Jobs(std::vector<Conversion> conversions, std::size_t count);
  ~Jobs();

  std::size_t size() const { return jobs_.size(); }
  FrameJob& operator[](std::size_t index) { return jobs_[index]; }
  const std::vector<Conversion>& conversions() const { return conversions_; }

  void use(const PlanRef& plan) {
    for (FrameJob& job : jobs_) job.plan = plan;
  }
  /// From now on expect_exact also compares the luma of the first target.
  void analyse() { analysed_ = true; }
  bool analysed() const { return analysed_; }
  /// The memory that the pictures are in, for prepare.
  FrameMemory memory() const { return jobs_.front().input.memory; }
  /// Puts the pictures into the GPU's memory as a decoder does: each into a larger surface, which
  /// is filled by a copy that is queued on the decoder's stream. Identities get targets too.
  void put_on(const std::shared_ptr<CudaContext>& gpu);
  /// The stage is to cover every picture with the mask that it was prepared with.
  void mask(std::shared_ptr<const PictureMask> mask);
  const std::shared_ptr<const PictureMask>& mask() const { return mask_; }
  /// The number of surfaces that have been given back.
  int surfaces_back() const { return *surfaces_back_; }
  /// From now on the job's picture is read as if it were stored bottom up.
  void turn_over(std::size_t index);

  /// Expects that every target of the job has the reference's bytes.
  void expect_exact(std::size_t index) const;
  void expect_all_exact() const {
    for (std::size_t i = 0; i < jobs_.size(); ++i) expect_exact(i);
  }

 private:
  void fill(FrameJob& job, std::size_t sequence);
  void draw_on(FrameJob& job, std::size_t sequence);
  void put_on(const std::shared_ptr<CudaContext>& gpu, FrameJob& job);

  FramePool pool_;
  const std::vector<Conversion> conversions_;
  const std::shared_ptr<std::atomic<int>> surfaces_back_ = std::make_shared<std::atomic<int>>(0);
  std::deque<InputFrame> pictures_;  // the pictures in host memory, if put_on was called
  std::deque<FrameJob> jobs_;
  bool analysed_ = false;
  std::shared_ptr<const PictureMask> mask_;
};

std::vector<Conversion> bgra_to_two(int width = kPictureWidth, int height = kPictureHeight);
std::vector<Conversion> nv12_to_two(int width = kPictureWidth, int height = kPictureHeight);

// The device's streams, in the order in which CudaContext makes them.
inline cudaStream_t clock_stream() { return stand_in::streams().at(0); }
inline cudaStream_t upload_stream() { return stand_in::streams().at(1); }
inline cudaStream_t memory_stream() { return stand_in::streams().at(2); }
inline cudaStream_t download_stream() { return stand_in::streams().at(3); }
inline cudaStream_t kernel_stream() { return stand_in::streams().at(5); }

/// Two shapes over sources of this conversion, up to `right` of their width.
std::shared_ptr<const PictureMask> mask_of(const Conversion& conversion, double right);
inline Deadline soon() { return std::chrono::steady_clock::now() + 60s; }

/// Copies queued on the stand-in since its last reset.
inline int copies() {
  return stand_in::calls("cudaMemcpyAsync") + stand_in::calls("cudaMemcpy2DAsync");
}

/// True if one failed call of the function may change nothing. A failed call of any other moves the
/// feed to the CPU or makes it fail.
bool may_fail_unnoticed(std::string_view function);

/// A stage that after `packets` packets tells its decoder that the feed has left the GPU.
class LeavingStage : public Stage {
 public:
  LeavingStage(std::unique_ptr<Stage> stage, int packets)
      : stage_(std::move(stage)), packets_(packets) {}
  BufferRef decode_context(std::string& why) override { return stage_->decode_context(why); }
  bool takes_device_frames() override { return packets_-- > 0 && stage_->takes_device_frames(); }
  PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory, bool analyse,
                  std::span<const FrameMemory> targets,
                  std::shared_ptr<const PictureMask> mask) override {
    return stage_->prepare(conversions, memory, analyse, targets, std::move(mask));
  }
  void submit(FrameJob& job) override { stage_->submit(job); }
  Wait wait(FrameJob& job, std::stop_token stop, Deadline deadline) override {
    return stage_->wait(job, std::move(stop), deadline);
  }

 private:
  const std::unique_ptr<Stage> stage_;
  std::atomic<int> packets_;
};

/// A GPU with a CPU as its fallback, and one feed with two encodes and two lanes.
template <typename Fixture>
class CudaStageFixture : public Fixture {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    Fixture::SetUp();
    if (this->IsSkipped() || this->HasFatalFailure()) return;
    device_ = CudaDevice::open(0, cpu_, hung_after());
    make_stage({});
  }
  virtual std::chrono::milliseconds hung_after() const { return CudaDevice::kHungAfter; }
  void TearDown() override {
    stage_.reset();
    device_.reset();
    if (this->IsSkipped()) return;
    if (stand_in::present()) {
      EXPECT_EQ(stand_in::lazy_loads(), 0) << "kernels not loaded by prepare";
      EXPECT_EQ(stand_in::spinning_waits(), 0) << "threads that did not sleep";
    }
    Fixture::TearDown();
  }

  void make_stage(std::optional<int> slices) {
    stats_.set_device("cuda:0");
    stage_ = device_->make_stage(stats_, slices);
  }
  /// Prepares, runs all jobs and compares.
  void run(Jobs& jobs) {
    jobs.use(stage_->prepare(jobs.conversions(), jobs.memory(), jobs.analysed(), {}, jobs.mask()));
    submit(jobs);
    wait(jobs);
  }
  void submit(Jobs& jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) stage_->submit(jobs[i]);
  }
  void wait(Jobs& jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_EQ(stage_->wait(jobs[i], {}, soon()), Stage::Wait::kReady) << "job " << i;
      jobs.expect_exact(i);
    }
  }
  /// Ends a hang and waits until the GPU has ended its work. Memory that is freed before that would
  /// stay registered.
  void let_go() {
    stand_in::release();
    EXPECT_TRUE(comes_true([&] { return !device_->context()->has_abandoned_jobs(); }));
  }
  unsigned converting() const { return (*stats_.ring_jobs())[index_of(RingState::kConverting)]; }
  unsigned ready() const { return (*stats_.ring_jobs())[index_of(RingState::kReady)]; }

  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedStats stats_{"gate", {{"a"}, {"b"}}, {}, 2};
  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace framelane::testing
