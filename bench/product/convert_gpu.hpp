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

  /// `frames` has kFrames frames and must outlive this. Throws CudaError and FeedError when there
  /// is no memory.
  ConvertGpu(CudaContext& context, ConvertFrames& frames);

  /// They refer to this object.
  std::vector<Contender> contenders();

 private:
  /// The memory for one frame that is under way.
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
  /// Upload, convert and download a whole frame.
  void carry(Formula formula, int place, cudaStream_t stream) const;
  /// From now on the place carries the next frame. If a copy or a kernel is missing, the frame
  /// before comes back again, and the check fails.
  void take_next(int place) { at(place).frame = (at(place).frame + 1) % kFrames; }
  /// Compares one row of what came back: that is enough to tell frames apart, and takes almost no
  /// time.
  void look(Formula formula, int place, int row);
  double both_ways() const { return frames_.source_bytes() + frames_.target_bytes(); }
  /// Overwrites what the last turn left in the first `count` places, on the GPU and in the targets,
  /// so that a missing copy or kernel is noticed. Place n then takes frame n.
  void spoil_places(int count);
  /// What look() found wrong since, or what is wrong with the frames that came back last.
  std::string compare(Formula formula, int count) const;

  const ConvertFrames& frames_;
  const int height_;
  const std::unique_ptr<const CudaConverter> exact_;
  std::vector<std::unique_ptr<Place>> places_;
  std::string wrong_;  // the first thing that look() found wrong in this turn
  CudaEvent begin_{CudaEvent::Kind::kTime}, end_{CudaEvent::Kind::kTime};
  Streams streams_{32};  // last, so that it is destroyed first
};

}  // namespace framelane::bench
