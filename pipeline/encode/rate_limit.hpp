#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include <cstdint>
#include <optional>

#include "pipeline/base/rational.hpp"

namespace framelane {

/// Says which frames an encode takes that is to have fewer than the source: the nearest one to each
/// multiple of 1 / rate on the feed's time line. So the encodes of a feed that have the same rate
/// take the same frames, and a frame that comes a little early or late is not lost. One thread.
class RateLimit {
 public:
  /// `rate`: frames per second; empty: all frames are taken.
  explicit RateLimit(std::optional<Rational> rate) : rate_(rate) {}

  /// False if the frame is one too many. To be asked once for each frame, in their order.
  /// `source_rate`: of all frames; 0/1: not known.
  bool takes(std::int64_t pts, AVRational time_base, AVRational source_rate);

 private:
  std::optional<Rational> rate_;
  std::optional<std::int64_t> multiple_;  // of the last frame that was taken
};

}  // namespace framelane
