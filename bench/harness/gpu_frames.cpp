#include "bench/harness/gpu_frames.hpp"

#include <algorithm>
#include <chrono>

#include "pipeline/stage/cuda/image_copy.hpp"

namespace framelane::bench {

GpuFrames::GpuFrames(CudaContext& context, const Conversion& conversion,
                     const ConstImageView& picture, const std::uint8_t* constants) {
  const Size size{"", conversion.width, conversion.height};
  const auto bytes = static_cast<double>(moved_bytes(conversion));
  int count =
      static_cast<int>(std::clamp(4.0 * attribute(cudaDevAttrL2CacheSize) / bytes, 2.0, 64.0));
  // Small frames take little time, so that more of them are needed for one measurement. A batch of
  // them is of as many different frames.
  small_ = size.height <= k1080p.height;
  if (small_) count = (count + kBatch - 1) / kBatch * kBatch;
  timed_ = small_ ? 12 * kBatch : std::max(3 * kBatch, (count + kBatch - 1) / kBatch * kBatch);
  for (int i = 0; i < count; ++i) {
    sources_.emplace_back(context, conversion.source, size.width, size.height);
    const auto [width, height] = conversion.target_size();
    targets_.emplace_back(context, conversion.target, width, height);
    frames_.push_back({as_const(sources_.back().image), targets_.back().image, nullptr, constants});
  }
  context.memory_stream().synchronize();
  for (const DeviceImage& source : sources_) {
    copy_rows(picture, source.image, 0, size.height, cudaMemcpyHostToDevice, stream());
  }
  stream().synchronize();
}

double GpuFrames::time_all(const std::function<void()>& work) const {
  begin_.record(stream());
  work();
  end_.record(stream());
  end_.synchronize();
  return std::chrono::duration<double, std::milli>(end_.since(begin_)).count() / timed();
}

double GpuFrames::time(const std::function<void(std::size_t)>& work) const {
  return time_all([&] {
    for (int i = 0; i < timed(); ++i) work(static_cast<std::size_t>(i) % count());
  });
}

void GpuFrames::spoil_targets() const {
  for (const DeviceImage& target : targets_) {
    cuda::check(cudaMemsetAsync(target.memory.data(), 0, target.memory.bytes(), stream().get()),
                "cudaMemsetAsync");
  }
  stream().synchronize();
}

void GpuFrames::download(std::size_t i, const ImageView& to) const {
  copy_rows(as_const(targets_[i].image), to, 0, to.height, cudaMemcpyDeviceToHost, stream());
  stream().synchronize();
}

std::string GpuFrames::compare(const ConstImageView& expected, const ImageView& to) const {
  for (std::size_t i = 0; i < count(); ++i) {
    download(i, to);
    std::string wrong = first_difference(expected, as_const(to));
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace framelane::bench
