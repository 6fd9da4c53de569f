#pragma once

#include <string>
#include <vector>

#include "bench/suites/cpu_peers.hpp"
#include "bench/suites/pictures.hpp"
#include "bench/suites/turns.hpp"
#include "pipeline/frames/frame_pool.hpp"

namespace framelane::bench {

/// One conversion for the CPU's contenders of `peers`: frames of the same random pixels, more of
/// them than caches hold, and what they have to become. One thread.
class PeerFrames {
 public:
  explicit PeerFrames(const Conversion& conversion);
  /// What one takes.
  static std::size_t bytes_of(const Conversion& conversion);

  const Conversion conversion;
  std::size_t count() const { return from_.size(); }  ///< of the frames
  /// Converts all frames in turn, on the calling thread; a sample is one frame. With `exact` every
  /// byte has to be the reference's, after every turn; without, how far they are is measured only.
  /// Refers to this object.
  Contender contender(std::string name, std::string note, Convert convert, bool exact);

 private:
  std::string check() const;

  FramePool sources_, targets_;
  std::vector<PooledImage> from_, to_;
  const PlainImage exact_;
};

}  // namespace framelane::bench
