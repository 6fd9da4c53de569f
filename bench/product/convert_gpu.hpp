#pragma once

#include <memory>
#include <vector>

#include "bench/harness/gpu_part.hpp"
#include "bench/product/convert_frames.hpp"
#include "kernels/cuda/cuda_converter.hpp"
#include "pipeline/stage/cuda/cuda_plan.hpp"

namespace framelane::bench {

/// The GPU's ways to convert a frame from host memory to host memory.
class ConvertGpu {
 public:
  static constexpr int kStreams[] = {2, 4, 8, 16, 18, 32};
  static constexpr int kInFlight[] = {2, 3, 4};
  static constexpr int kFrames = 4;  ///< the most in flight

  /// `frames` has kFrames and stays. Throws CudaError and FeedError when there is no memory.
  ConvertGpu(CudaContext& context, ConvertFrames& frames);

  /// They refer to this object.
  std::vector<Contender> contenders();

 private:
  /// Where one frame is.
  struct Place {
    Place(CudaContext& context, ConvertFrames& frames);
    int frame = 0;  ///< which
    DeviceImage device_source, device_target;
    PooledImage target;
  };

  std::vector<Contender> ceilings();
  Contender kernel_alone(Formula formula);
  Contender default_stream(Formula formula);
  Contender sliced(Formula formula, int streams);
  Contender whole_frames(Formula formula, int in_flight);

  Place& at(int place) const { return *places_[static_cast<std::size_t>(place)]; }
  void upload(int place, int begin, int end, cudaStream_t stream) const;
  void convert(Formula formula, int place, int begin, int end, cudaStream_t stream) const;
  void download(int place, int begin, int end, cudaStream_t stream) const;
  /// All three, of the whole frame.
  void carry(Formula formula, int place, cudaStream_t stream) const;
  /// The place takes the next frame: where a copy or a kernel is missing, the one before comes back
  /// again.
  void take_next(int place) { at(place).frame = (at(place).frame + 1) % kFrames; }
  /// Looks at one row of what came back, which tells frames apart and takes no time beside one.
  void look(Formula formula, int place, int row);
  double both_ways() const { return frames_.source_bytes() + frames_.target_bytes(); }
  /// Of the first `count` places, each of which takes the frame of its number: what the last turn
  /// left on the GPU and as results, so that a copy or a kernel that is missing shows.
  void spoil_places(int count);
  /// What was seen since, or what is wrong with the frames that came back last.
  std::string compare(Formula formula, int count) const;

  const ConvertFrames& frames_;
  const int height_;
  const std::unique_ptr<const CudaConverter> exact_;
  std::vector<std::unique_ptr<Place>> places_;
  std::string wrong_;  // what was seen first in this turn
  CudaEvent begin_{CudaEvent::Kind::kTime}, end_{CudaEvent::Kind::kTime};
  Streams streams_{32};  // the first to go
};

}  // namespace framelane::bench
