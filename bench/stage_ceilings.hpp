// What the bus and the GPU can carry, beside which the stage is measured: copies and kernels that
// are queued far ahead, so that they never run out of work. Only where there is the CUDA backend.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/stage_feed.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "pipeline/stage/cuda/cuda_handles.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"
#include "pipeline/stage/cuda/image_copy.hpp"

namespace framelane::bench {

/// The copies that one feed's conversion needs, and its kernel, each by itself. Rates are frames a
/// second, of at least the seconds asked for, or until `stop` is not 0. Throws CudaError.
class StageCeilings {
 public:
  /// Copies from `frames`, round and round; they, the context and `stop` stay.
  StageCeilings(CudaContext& context, const Conversion& convert,
                std::span<const PooledImage> frames, const std::atomic<int>* stop = nullptr)
      : convert_(convert),
        converter_(CudaConverter::make(convert)),
        frames_(frames),
        stop_(stop),
        target_(allocate_image(targets_, convert.target, convert.width, convert.height)),
        images_(context, {&convert_, 1}, FrameMemory::kHost) {
    context.memory_stream().synchronize();
  }
  /// Memory may go only when what uses it has ended.
  ~StageCeilings() {
    for (const CudaStream& stream : streams_) {
      cuda::report(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    }
  }
  StageCeilings(const StageCeilings&) = delete;
  StageCeilings& operator=(const StageCeilings&) = delete;

  double upload(double seconds) const {
    return rate(seconds, {[this](int i) { queue_upload(i, streams_[0]); }});
  }
  double download(double seconds) const {
    return rate(seconds, {[this](int) { queue_download(streams_[0]); }});
  }
  /// As many downloads of the target as uploads of the source, side by side.
  double duplex(double seconds) const {
    return rate(seconds, {[this](int i) { queue_upload(i, streams_[0]); },
                          [this](int) { queue_download(streams_[1]); }});
  }
  double kernel(double seconds) const {
    return rate(seconds, {[this](int) {
                  cuda::check(converter_->enqueue(as_const(images_.source->image),
                                                  images_.targets[0]->image, 0, convert_.height,
                                                  streams_[0].get()),
                              "cudaLaunchKernel");
                }});
  }

 private:
  void queue_upload(int i, const CudaStream& stream) const {
    copy_rows(as_const(frames_[static_cast<std::size_t>(i) % frames_.size()].image),
              images_.source->image, 0, convert_.height, cudaMemcpyHostToDevice, stream);
  }
  void queue_download(const CudaStream& stream) const {
    copy_rows(as_const(images_.targets[0]->image), target_.image, 0, convert_.height,
              cudaMemcpyDeviceToHost, stream);
  }
  /// Rounds per second of work that never runs out: each of `works` queues one piece of a round on
  /// the stream of its index, kAhead rounds before the one that is waited for.
  double rate(double seconds, const std::vector<std::function<void(int)>>& works) const {
    constexpr int kAhead = 24;
    std::vector<std::vector<CudaEvent>> done(works.size());
    for (auto& events : done) {
      for (int i = 0; i < kAhead; ++i) events.emplace_back(CudaEvent::Kind::kDone);
    }
    Clock::time_point start;
    double result = 0;
    for (int i = 0; result == 0; ++i) {
      for (std::size_t w = 0; w < works.size(); ++w) {
        const CudaEvent& event = done[w][static_cast<std::size_t>(i % kAhead)];
        if (i >= kAhead) event.synchronize();  // of round i - kAhead
        works[w](i);
        event.record(streams_[w]);
      }
      if (i == kAhead) start = Clock::now();  // round 0 is not measured
      if (i > kAhead && (seconds_since(start) >= seconds || (stop_ != nullptr && *stop_ != 0))) {
        result = (i - kAhead) / seconds_since(start);
      }
    }
    for (const CudaStream& stream : streams_) stream.synchronize();
    return result;
  }

  const Conversion convert_;
  const std::unique_ptr<const CudaConverter> converter_;
  const std::span<const PooledImage> frames_;
  const std::atomic<int>* const stop_;
  FramePool targets_;
  const PooledImage target_;
  const LaneImages images_;
  const std::array<CudaStream, 2> streams_;
};

}  // namespace framelane::bench
