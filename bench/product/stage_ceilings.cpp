#include "bench/product/stage_ceilings.hpp"

#include "bench/harness/turns.hpp"
#include "pipeline/stage/cuda/image_copy.hpp"

namespace framelane::bench {

StageCeilings::StageCeilings(CudaContext& context, std::span<const Conversion> conversions,
                             std::span<const PooledImage> frames, const std::atomic<int>* stop)
    : frames_(frames), stop_(stop), images_(context, conversions, FrameMemory::kHost) {
  for (const Conversion& conversion : conversions) {
    Made& made = made_.emplace_back();
    if (!is_identity(conversion)) made.converter = CudaConverter::make(conversion);
    if (made.converter != nullptr && made.converter->constant_bytes() > 0) {
      made.constants.emplace(context, *made.converter);
    }
    const auto [width, height] = conversion.target_size();
    made.target = allocate_image(pool_, conversion.target, width, height);
  }
  context.memory_stream().synchronize();
}

StageCeilings::~StageCeilings() {
  for (const CudaStream& stream : streams_) {
    cuda::report(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  }
}

double StageCeilings::upload(double seconds) const {
  return rate(seconds, {[this](int i) { queue_upload(i, streams_[0]); }});
}
double StageCeilings::download(double seconds) const {
  return rate(seconds, {[this](int) { queue_downloads(streams_[0]); }});
}
double StageCeilings::duplex(double seconds) const {
  return rate(seconds, {[this](int i) { queue_upload(i, streams_[0]); },
                        [this](int) { queue_downloads(streams_[1]); }});
}
double StageCeilings::kernel(double seconds) const {
  return rate(seconds, {[this](int) { queue_kernels(streams_[0]); }});
}

void StageCeilings::queue_upload(int i, const CudaStream& stream) const {
  copy_rows(as_const(frames_[static_cast<std::size_t>(i) % frames_.size()].image),
            images_.source->image, 0, images_.source->image.height, cudaMemcpyHostToDevice, stream);
}
void StageCeilings::queue_kernels(const CudaStream& stream) const {
  const ConstImageView source = as_const(images_.source->image);
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const auto& [converter, constants, result] = made_[i];
    const ImageView& target = images_.targets[i]->image;
    if (converter == nullptr) {
      copy_rows(source, target, 0, target.height, cudaMemcpyDeviceToDevice, stream);
      continue;
    }
    const CudaFrame frame{source, target, nullptr, constants ? constants->memory.data() : nullptr};
    cuda::check(converter->enqueue({&frame, 1}, 0, target.height, stream.get()),
                "cudaLaunchKernel");
  }
}
void StageCeilings::queue_downloads(const CudaStream& stream) const {
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const ConstImageView made = as_const(images_.targets[i]->image);
    copy_rows(made, made_[i].target.image, 0, made.height, cudaMemcpyDeviceToHost, stream);
  }
}

double StageCeilings::rate(double seconds,
                           const std::vector<std::function<void(int)>>& works) const {
  constexpr int kAhead = 24;  // rounds that are queued and not yet waited for
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

}  // namespace framelane::bench
