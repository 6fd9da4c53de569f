#include "bench/product/stage_ceilings.hpp"

#include "bench/harness/turns.hpp"
#include "pipeline/stage/cuda/image_copy.hpp"

namespace framelane::bench {

StageCeilings::StageCeilings(CudaContext& context, const Conversion& convert,
                             std::span<const PooledImage> frames, const std::atomic<int>* stop)
    : convert_(convert),
      converter_(CudaConverter::make(convert)),
      frames_(frames),
      stop_(stop),
      target_(allocate_image(targets_, convert.target, convert.width, convert.height)),
      images_(context, {&convert_, 1}, FrameMemory::kHost) {
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
  return rate(seconds, {[this](int) { queue_download(streams_[0]); }});
}
double StageCeilings::duplex(double seconds) const {
  return rate(seconds, {[this](int i) { queue_upload(i, streams_[0]); },
                        [this](int) { queue_download(streams_[1]); }});
}
double StageCeilings::kernel(double seconds) const {
  return rate(seconds, {[this](int) {
                cuda::check(
                    converter_->enqueue(as_const(images_.source->image), images_.targets[0]->image,
                                        0, convert_.height, streams_[0].get()),
                    "cudaLaunchKernel");
              }});
}

void StageCeilings::queue_upload(int i, const CudaStream& stream) const {
  copy_rows(as_const(frames_[static_cast<std::size_t>(i) % frames_.size()].image),
            images_.source->image, 0, convert_.height, cudaMemcpyHostToDevice, stream);
}
void StageCeilings::queue_download(const CudaStream& stream) const {
  copy_rows(as_const(images_.targets[0]->image), target_.image, 0, convert_.height,
            cudaMemcpyDeviceToHost, stream);
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
