// One picture in a GPU's memory, to be converted over and over there: what `peers` and `reduce`
// time kernels with. Only where there is the CUDA backend.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/stage_feed.hpp"
#include "bench/suites/gpu_part.hpp"
#include "bench/suites/pictures.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"
#include "pipeline/stage/cuda/image_copy.hpp"

namespace framelane::bench {

/// The picture as often as goes round more memory than the second-level cache holds, and a target
/// for each. One thread; throws CudaError.
class GpuFrames {
 public:
  GpuFrames(CudaContext& context, const Conversion& conversion, const ConstImageView& picture) {
    const Size size{"", conversion.width, conversion.height};
    const auto bytes = static_cast<double>(image_bytes(conversion.source, size) +
                                           image_bytes(conversion.target, size));
    const int count =
        static_cast<int>(std::clamp(4.0 * attribute(cudaDevAttrL2CacheSize) / bytes, 2.0, 64.0));
    for (int i = 0; i < count; ++i) {
      sources_.emplace_back(context, conversion.source, size.width, size.height);
      targets_.emplace_back(context, conversion.target, size.width, size.height);
    }
    context.memory_stream().synchronize();
    for (const DeviceImage& source : sources_) {
      copy_rows(picture, source.image, 0, size.height, cudaMemcpyHostToDevice, stream());
    }
    stream().synchronize();
  }

  std::size_t count() const { return sources_.size(); }
  const DeviceImage& source(std::size_t i) const { return sources_[i]; }
  const DeviceImage& target(std::size_t i) const { return targets_[i]; }
  /// On which all work is queued.
  const CudaStream& stream() const { return streams_[0]; }

  /// How many frames time() has `work` queue.
  int timed() const { return static_cast<int>(std::max<std::size_t>(count(), 16)); }
  /// Milliseconds a frame on the GPU's own clock, where they follow one another. `work` queues one,
  /// of source and target i.
  double time(const std::function<void(std::size_t)>& work) const {
    begin_.record(stream());
    for (int i = 0; i < timed(); ++i) work(static_cast<std::size_t>(i) % count());
    end_.record(stream());
    end_.synchronize();
    return std::chrono::duration<double, std::milli>(end_.since(begin_)).count() / timed();
  }

  void spoil_targets() const {
    for (const DeviceImage& target : targets_) {
      cuda::check(cudaMemsetAsync(target.memory.data(), 0, target.memory.bytes(), stream().get()),
                  "cudaMemsetAsync");
    }
    stream().synchronize();
  }
  void download(std::size_t i, const ImageView& to) const {
    copy_rows(as_const(targets_[i].image), to, 0, to.height, cudaMemcpyDeviceToHost, stream());
    stream().synchronize();
  }
  /// Empty, or where a target first differs from `expected`; all come down to `to`.
  std::string compare(const ConstImageView& expected, const ImageView& to) const {
    for (std::size_t i = 0; i < count(); ++i) {
      download(i, to);
      std::string wrong = first_difference(expected, as_const(to));
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

 private:
  std::vector<DeviceImage> sources_, targets_;
  CudaEvent begin_{CudaEvent::Kind::kTime}, end_{CudaEvent::Kind::kTime};
  Streams streams_{1};  // the first to go
};

}  // namespace framelane::bench
