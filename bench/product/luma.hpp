// What counting a frame's luma costs beside converting it, on one core and on a GPU: a part of the
// suite `reduce`.
#pragma once

#include <memory>
#include <vector>

#include "bench/harness/pictures.hpp"
#include "bench/harness/turns.hpp"

namespace framelane::bench {

/// Pictures whose luma is counted in different ways: random values fall on all counters, black on
/// one, and a gradient, as a camera sees it, on few at a time.
enum class LumaPicture { kNoise, kBlack, kGradient };
inline constexpr LumaPicture kLumaPictures[] = {LumaPicture::kNoise, LumaPicture::kBlack,
                                                LumaPicture::kGradient};

/// BGRA to NV12, with the luma counted and without. One thread.
class LumaWork {
 public:
  /// Throws NoRoom where the machine has too little memory.
  LumaWork(const Session& session, const Size& size, LumaPicture picture);
  ~LumaWork();
  /// Puts the frames on the session's GPU. Throws what CUDA throws.
  void add_gpu(const Session& session);

  /// On one core, and on the GPU after add_gpu. They refer to this object.
  std::vector<Contender> cpu_contenders();
  std::vector<Contender> gpu_contenders();

 private:
  struct Cpu;
  struct Gpu;
  std::unique_ptr<Cpu> cpu_;
  std::unique_ptr<Gpu> gpu_;
};

/// Measures all sizes and pictures, one after the other: on the GPU, if there is one, and on one
/// core the first of each. What fails becomes a problem. `turn`: seconds.
void measure_luma(const Session& session, double turn, const std::vector<Size>& sizes,
                  Result& result);
/// How many contenders measure_luma has.
std::size_t luma_contenders(const Session& session, const std::vector<Size>& sizes);

/// Adds what the counting costs to the verdict, where it was measured.
void judge_luma(Result& result);

}  // namespace framelane::bench
