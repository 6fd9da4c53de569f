#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/reference.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/stage/cpu_stage.hpp"
#include "pipeline/stage/cuda/cuda_stage.hpp"
#include "tests/cuda_runtime/fixture.hpp"

namespace framelane::testing {

using namespace std::chrono_literals;

inline constexpr int kPictureWidth = 130;
inline constexpr int kPictureHeight = 67;

inline Conversion conversion_of(PixelFormat source, PixelFormat target, int width = kPictureWidth,
                                int height = kPictureHeight) {
  const auto color = [](PixelFormat format) {
    ColorSpec spec;
    if (info(format).rgb) {
      spec.matrix = Matrix::kRgb;
      spec.range = Range::kFull;
    }
    return spec;
  };
  Conversion conversion{width, height, source, color(source), target, color(target)};
  // From YUV to YUV the range changes, so that there is something to convert.
  if (!info(source).rgb) conversion.source_color.range = Range::kFull;
  return conversion;
}

/// Jobs of one conversion plan, each with its own random pixels, and the results that they must
/// have.
class Jobs {
 public:
  Jobs(std::vector<Conversion> conversions, std::size_t count)
      : conversions_(std::move(conversions)), jobs_(count) {
    for (std::size_t i = 0; i < count; ++i) fill(jobs_[i], i);
  }

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
  void put_on(const std::shared_ptr<CudaContext>& gpu) {
    gpu->make_current();
    for (std::size_t i = 0; i < jobs_.size(); ++i) put_on(gpu, jobs_[i]);
  }
  /// The number of surfaces that have been given back.
  int surfaces_back() const { return *surfaces_back_; }
  /// From now on the job's picture is read as if it were stored bottom up.
  void turn_over(std::size_t index) {
    ConstImageView& image = jobs_[index].input.image;
    for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
      auto& [data, pitch] = image.planes[plane];
      data += (plane_rows(image.format, plane, image.height) - 1) * pitch;
      pitch = -pitch;
    }
  }

  /// Expects that every target of the job has the reference's bytes.
  void expect_exact(std::size_t index) const {
    const FrameJob& job = jobs_[index];
    if (analysed_) {
      LumaHistogram luma;
      const ImageView& got = job.outputs[0].target.image;
      count_luma(as_const(got), 0, got.height, luma);
      ASSERT_EQ(job.luma, luma) << "job " << index;
    }
    FramePool pool;
    for (std::size_t i = 0; i < conversions_.size(); ++i) {
      if (!job.outputs[i].target.buffer) continue;
      const ImageView& got = job.outputs[i].target.image;
      const PooledImage expected = allocate_image(pool, got.format, got.width, got.height);
      const ConstImageView& from = pictures_.empty() ? job.input.image : pictures_[index].image;
      if (is_identity(conversions_[i])) {
        copy_planes(from, expected.image);
      } else {
        convert_reference(conversions_[i], from, expected.image);
      }
      for (int plane = 0; plane < info(got.format).plane_count; ++plane) {
        const std::size_t bytes = plane_row_bytes(got.format, plane, got.width);
        for (int y = 0; y < plane_rows(got.format, plane, got.height); ++y) {
          ASSERT_EQ(std::memcmp(got.row(plane, y), expected.image.row(plane, y), bytes), 0)
              << "job " << index << " output " << i << ": " << info(conversions_[i].source).name
              << " to " << info(got.format).name << ", plane " << plane << " row " << y;
        }
      }
    }
  }
  void expect_all_exact() const {
    for (std::size_t i = 0; i < jobs_.size(); ++i) expect_exact(i);
  }

 private:
  void fill(FrameJob& job, std::size_t sequence) {
    const Conversion& any = conversions_.front();
    const PooledImage source = allocate_image(pool_, any.source, any.width, any.height);
    std::mt19937 random(static_cast<unsigned>(sequence) + 1);
    for (int plane = 0; plane < info(any.source).plane_count; ++plane) {
      const std::size_t bytes = plane_row_bytes(any.source, plane, any.width);
      for (int y = 0; y < plane_rows(any.source, plane, any.height); ++y) {
        for (std::size_t x = 0; x < bytes; ++x) {
          source.image.row(plane, y)[x] = static_cast<std::uint8_t>(random());
        }
      }
    }
    job.sequence = sequence;
    job.input.image = as_const(source.image);
    job.input.buffer = source.buffer;
    job.outputs.resize(conversions_.size());
    for (std::size_t i = 0; i < conversions_.size(); ++i) {
      if (is_identity(conversions_[i])) continue;
      job.outputs[i].target = allocate_image(pool_, conversions_[i].target, any.width, any.height,
                                             i == 0 ? sizeof(LumaHistogram) : 0);
    }
  }

  struct Surface {
    Surface(std::shared_ptr<CudaContext> context, std::size_t size)
        : gpu(std::move(context)), pool(gpu->decode_stream()), memory(std::in_place, pool, size) {}
    ~Surface() {
      gpu->try_make_current();
      // The copy that fills it must have ended. If a test makes the call fail, it is repeated.
      const cudaStream_t filler = gpu->decode_stream().get();
      if (cudaStreamSynchronize(filler) != cudaSuccess) cudaStreamSynchronize(filler);
      memory.reset();
      if (back) ++*back;
    }
    std::shared_ptr<CudaContext> gpu;
    DevicePool pool;
    std::optional<DeviceMemory> memory;
    std::shared_ptr<std::atomic<int>> back;
  };

  static void copy_planes(const ConstImageView& from, const ImageView& to) {
    for (int plane = 0; plane < info(to.format).plane_count; ++plane) {
      for (int y = 0; y < plane_rows(to.format, plane, to.height); ++y) {
        std::memcpy(to.row(plane, y), from.row(plane, y),
                    plane_row_bytes(to.format, plane, to.width));
      }
    }
  }

  void put_on(const std::shared_ptr<CudaContext>& gpu, FrameJob& job) {
    constexpr std::size_t kPitch = 512;
    constexpr std::size_t kBorder = 32;
    ConstImageView image = job.input.image;
    std::size_t rows = 0;
    for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
      rows += static_cast<std::size_t>(plane_rows(image.format, plane, image.height)) + 2;
    }
    auto surface = std::make_unique<Surface>(gpu, rows * kPitch);
    surface->back = surfaces_back_;
    std::uint8_t* at = surface->memory->data() + kPitch + kBorder;
    for (int plane = 0; plane < info(image.format).plane_count; ++plane) {
      const std::size_t bytes = plane_row_bytes(image.format, plane, image.width);
      const auto count = static_cast<std::size_t>(plane_rows(image.format, plane, image.height));
      ASSERT_LE(bytes + kBorder, kPitch);
      cuda::check(cudaMemcpy2DAsync(at, kPitch, image.row(plane, 0),
                                    static_cast<std::size_t>(image.planes[plane].pitch), bytes,
                                    count, cudaMemcpyHostToDevice, gpu->decode_stream().get()),
                  "cudaMemcpy2DAsync");
      image.planes[plane] = {at, static_cast<std::ptrdiff_t>(kPitch)};
      at += (count + 2) * kPitch;
    }
    pictures_.push_back(job.input);
    const auto give_back = [](void* opaque, std::uint8_t*) {
      const std::unique_ptr<Surface> owned(static_cast<Surface*>(opaque));
    };
    std::uint8_t* const memory = surface->memory->data();
    job.input.buffer =
        BufferRef::adopt(av_buffer_create(memory, 1, give_back, surface.release(), 0));
    job.input.image = image;
    job.input.memory = FrameMemory::kDevice;
    for (std::size_t i = 0; i < conversions_.size(); ++i) {
      if (job.outputs[i].target.buffer) continue;
      job.outputs[i].target = allocate_image(pool_, conversions_[i].target, image.width,
                                             image.height, i == 0 ? sizeof(LumaHistogram) : 0);
    }
  }

  FramePool pool_;
  const std::vector<Conversion> conversions_;
  const std::shared_ptr<std::atomic<int>> surfaces_back_ = std::make_shared<std::atomic<int>>(0);
  std::deque<InputFrame> pictures_;  // the pictures in host memory, if put_on was called
  std::deque<FrameJob> jobs_;
  bool analysed_ = false;
};

inline std::vector<Conversion> bgra_to_two(int width = kPictureWidth, int height = kPictureHeight) {
  return {conversion_of(PixelFormat::kBgra, PixelFormat::kNv12, width, height),
          conversion_of(PixelFormat::kBgra, PixelFormat::kI444, width, height)};
}

inline std::vector<Conversion> nv12_to_two(int width = kPictureWidth, int height = kPictureHeight) {
  Conversion same = conversion_of(PixelFormat::kNv12, PixelFormat::kNv12, width, height);
  same.target_color = same.source_color;
  return {same, conversion_of(PixelFormat::kNv12, PixelFormat::kI420, width, height)};
}

// The device's streams, in the order in which CudaContext makes them.
inline cudaStream_t clock_stream() { return stand_in::streams().at(0); }
inline cudaStream_t upload_stream() { return stand_in::streams().at(1); }
inline cudaStream_t memory_stream() { return stand_in::streams().at(2); }
inline cudaStream_t download_stream() { return stand_in::streams().at(3); }
inline cudaStream_t kernel_stream() { return stand_in::streams().at(5); }

inline Deadline soon() { return std::chrono::steady_clock::now() + 60s; }

/// Copies queued on the stand-in since its last reset.
inline int copies() {
  return stand_in::calls("cudaMemcpyAsync") + stand_in::calls("cudaMemcpy2DAsync");
}

/// True if one failed call of the function may change nothing. A failed call of any other moves the
/// feed to the CPU or makes it fail.
inline bool may_fail_unnoticed(std::string_view function) {
  static constexpr std::string_view kHarmless[] = {
      "cudaEventElapsedTime",     // only a job's times are lost
      "cudaEventQuery",           // asks whether a job hangs, or whether the clock's mark has come
      "cudaGetDriverEntryPoint",  // then the GPU does not decode
      "cudaSetDevice",            // the device may be the current one already
      "cudaStreamSynchronize",    // only these tests call it, for their own pictures
      "cudaEventDestroy",         // this and the next ones release the object even if they fail
      "cudaStreamDestroy",       "cudaFreeAsync", "cudaHostUnregister"};
  return std::ranges::find(kHarmless, function) != std::end(kHarmless);
}

/// Waits until the condition is true. Returns false after a minute.
inline bool comes(const std::function<bool()>& condition) {
  for (const Deadline deadline = soon(); !condition(); std::this_thread::sleep_for(1ms)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

/// A stage that after `packets` packets tells its decoder that the feed has left the GPU.
class LeavingStage : public Stage {
 public:
  LeavingStage(std::unique_ptr<Stage> stage, int packets)
      : stage_(std::move(stage)), packets_(packets) {}
  BufferRef decode_context(std::string& why) override { return stage_->decode_context(why); }
  bool takes_device_frames() override { return packets_-- > 0 && stage_->takes_device_frames(); }
  PlanRef prepare(std::span<const Conversion> conversions, FrameMemory memory,
                  bool analyse) override {
    return stage_->prepare(conversions, memory, analyse);
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
    jobs.use(stage_->prepare(jobs.conversions(), jobs.memory(), jobs.analysed()));
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
    EXPECT_TRUE(comes([&] { return !device_->context()->has_abandoned_jobs(); }));
  }
  unsigned converting() const { return stats_.ring_jobs[index_of(RingState::kConverting)]; }
  unsigned ready() const { return stats_.ring_jobs[index_of(RingState::kReady)]; }

  const std::shared_ptr<Device> cpu_ = std::make_shared<CpuDevice>(2);
  FeedStats stats_{"gate", {{"a"}, {"b"}}, {}, 2};
  std::shared_ptr<CudaDevice> device_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace framelane::testing
