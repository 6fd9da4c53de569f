#pragma once

extern "C" {
#include <libavutil/rational.h>
}

#include <chrono>
#include <cstdint>
#include <optional>

#include "pipeline/base/rational.hpp"

namespace framelane {

/// Says which frames an encode takes that is to have fewer than the source: the nearest one to each
/// multiple of 1 / rate on the feed's time line. A frame that comes a little early or late is not
/// lost.
///
/// With a `gop` it takes the first frame at or after each multiple of gop, which is a keyframe in
/// every encode with this gop (KeyframeTimes). The multiples of 1 / rate count from that frame on.
/// A frame shortly before gives way to it: if it comes less than half of 1 / rate before, and if
/// more frames than the rate would come in the long run. If gop is shorter than 1 / rate, only such
/// keyframes are taken: the nearest one to each multiple of 1 / rate.
///
/// One thread.
class RateLimit {
 public:
  /// `rate`: frames per second; empty: all frames are taken. `gop`: time between keyframes; empty:
  /// they may be anywhere.
  RateLimit(std::optional<Rational> rate, std::optional<std::chrono::microseconds> gop)
      : rate_(rate), gop_(gop) {}

  /// False if the frame is one too many. To be asked once for each frame, in their order.
  /// `source_rate`: of all frames; 0/1: not known.
  bool takes(std::int64_t pts, AVRational time_base, AVRational source_rate);
  /// The frame that was asked for last goes to the encoder. Without this it is lost, and the next
  /// frame has its place.
  void taken() { last_ = next_; }

 private:
  struct Place {
    std::int64_t group = 0;     ///< its time divided by gop
    std::int64_t begin_us = 0;  ///< of the first frame of its group
    std::int64_t multiple = 0;  ///< of 1 / rate: the number of the one that it is nearest to
    double ahead = 0;           ///< when the group began: how many frames more than the rate came
  };

  bool takes_in_group(std::int64_t time_us, std::int64_t half_us, std::int64_t distance_us);
  double ahead(const Place& last, std::int64_t next_begin_us) const;
  double frames_in(std::int64_t us) const;          // as many as the rate allows
  std::int64_t multiple_at(std::int64_t us) const;  // the same, rounded down

  std::optional<Rational> rate_;
  std::optional<std::chrono::microseconds> gop_;
  std::optional<Place> last_;                // of the last frame that was taken
  Place next_;                               // of the frame that was asked for last
  std::optional<std::int64_t> previous_us_;  // when that was
};

}  // namespace framelane
