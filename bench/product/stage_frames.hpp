// The frames that go through a stage, again and again, and what has to come out of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bench/harness/pictures.hpp"

namespace framelane::bench {

/// Frames of random bytes, and the exact results of all that is made of each. One thread.
class StageFrames {
 public:
  /// Requires conversions; all of them have one source.
  explicit StageFrames(std::vector<Conversion> conversions);

  /// Makes what is missing to so many frames, after which an earlier frames() is no longer valid if
  /// it had fewer. The results of large frames take seconds, on all processors. Throws
  /// FeedError(kMemory).
  void make(int count);

  const std::vector<Conversion>& conversions() const { return conversions_; }
  /// All that were made: at least as many as were asked for, and the first ones always the same.
  std::span<const PooledImage> frames() const { return frames_; }
  /// What is made of a frame, by conversion.
  std::span<const PlainImage> results(std::size_t frame) const { return results_[frame]; }

 private:
  const std::vector<Conversion> conversions_;
  FramePool pool_;
  std::vector<PooledImage> frames_;
  std::vector<std::vector<PlainImage>> results_;
};

}  // namespace framelane::bench
