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

/// What all contenders of `convert` share: frames of random BGRA, and their exact results. Frame n
/// is frame 0 with its rows rotated up by n, and so is its result; so a frame that is mistaken for
/// another is noticed. All frames lie in one picture that has a few rows more, so that many need
/// hardly more memory than one. Immutable.
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

  /// Empty, or where `got` differs from the result of frame `frame`.
  std::string compare(Formula formula, int frame, const ImageView& got) const;
  /// The same of one row, which is enough to tell frames apart.
  std::string compare_row(Formula formula, int frame, int row, const ImageView& got) const;
  /// The share of samples (0..1) in which the classic formula differs from the exact result.
  double classic_error_share() const;

 private:
  FramePool sources_, targets_;
  const PooledImage frames_;
  const PlainImage exact_, classic_;
};

}  // namespace framelane::bench
