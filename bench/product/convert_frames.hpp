#pragma once

#include <string>

#include "bench/harness/pictures.hpp"
#include "kernels/conversion.hpp"
#include "kernels/image_view.hpp"
#include "pipeline/frames/frame_pool.hpp"

namespace framelane::bench {

inline constexpr const char* kScalar = "CPU, scalar";
inline constexpr const char* kCpuSimd = "CPU, SIMD";
inline constexpr const char* kDefaultStream = "GPU, default stream";
inline constexpr const char* kSliced = "GPU, sliced";
inline constexpr const char* kWholeFrames = "GPU, whole frames";

enum class Formula { kExact, kClassic };
inline constexpr Formula kFormulas[] = {Formula::kExact, Formula::kClassic};
const char* name_of(Formula formula);

/// The plain loop with classic_yuv, whole frames of one plane each.
void convert_classic(const ConstImageView& source, const ImageView& target);

/// What all contenders of `convert` share: frames of random BGRA, and what they have to become.
/// Frame n is frame 0 with its rows moved up by n, round and round, and so is its result: a frame
/// that was mistaken for another is seen. All lie in one picture that is higher by the number of
/// frames, so that many take no more memory than one. Immutable.
class ConvertFrames {
 public:
  /// Works out both results, by the reference and by convert_classic.
  ConvertFrames(int width, int height, int count);

  const Conversion conversion;  ///< the exact one, to the classic formula's BT.601
  ConstImageView source(int frame) const;
  PooledImage make_target() {
    return allocate_image(targets_, conversion.target, conversion.width, conversion.height);
  }
  double source_bytes() const;  ///< of one frame's pixels
  double target_bytes() const;

  /// Empty, or where `got` is not frame `frame` converted.
  std::string compare(Formula formula, int frame, const ImageView& got) const;
  /// The same of one row, which is enough to tell frames apart.
  std::string compare_row(Formula formula, int frame, int row, const ImageView& got) const;
  /// Of all samples: the share (0..1) in which the classic formula differs from the exact result.
  double classic_error_share() const;

 private:
  FramePool sources_, targets_;
  const PooledImage frames_;
  const PlainImage exact_, classic_;
};

}  // namespace framelane::bench
