// What only a GPU adds to a StageWork. Builds without the CUDA backend have bench/gpu_none.cpp
// instead of its source.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bench/product/stage_work.hpp"

namespace framelane::bench {

/// What is measured beside the setups on a GPU. One thread. The contenders refer to this object.
/// Throws what CUDA throws.
class GpuContenders {
 public:
  virtual ~GpuContenders() = default;

  /// The kernels alone.
  virtual Contender kernels() = 0;
  /// What the bus can carry; for a work with_others also each other single part of the work.
  virtual std::vector<Contender> ceilings() = 0;
  /// The usual ways to convert frames; none unless the work is with_others.
  virtual std::vector<Contender> usual_ways() = 0;
};

/// Null if the session has no GPU. `frames` are the first ones of `made`, which has their results.
/// The session, the work and the frames must outlive the object. `turn`: seconds.
std::unique_ptr<GpuContenders> make_gpu_contenders(const Session& session, const Work& work,
                                                   std::span<const PooledImage> frames,
                                                   const StageFrames& made, double turn);

}  // namespace framelane::bench
