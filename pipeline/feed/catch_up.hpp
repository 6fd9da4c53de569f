#pragma once

#include <chrono>
#include <optional>

namespace framelane {

/// Says how long a live source's frame may wait for a place in the ring. A live source delivers
/// faster than in real time only for a moment: what it held back while it was opened, or while this
/// process did not run. Such a burst may take as long as its frames were apart, so that encodes
/// that are fast enough for the source get all of it. If they are not, nothing comes in a burst,
/// and no frame waits. One thread.
class CatchUp {
 public:
  using Clock = std::chrono::steady_clock;

  /// Until when the frame may wait; not later than `arrived` if it is not part of a burst. At most
  /// kMost later. `time`: the frame's place on the feed's line.
  Clock::time_point deadline(std::chrono::microseconds time, Clock::time_point arrived);

  static constexpr std::chrono::seconds kMost{5};

 private:
  std::optional<Clock::time_point> origin_;  // the deadline of a frame with the time 0
  Clock::time_point last_;                   // when the last frame arrived
};

}  // namespace framelane
