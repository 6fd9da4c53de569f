#pragma once

#include <chrono>
#include <optional>

namespace framelane {

/// Says how long a live source's frame may wait for a place in the ring. A live source delivers
/// faster than in real time only for a moment: what it held back while it was opened, or while this
/// process did not run. The frames of such a burst may wait for as long as they were apart, so that
/// encodes that are fast enough for the source get all of them.
///
/// While a frame waits, nothing is read. So no frame waits if that does not help: encodes that are
/// too slow for the source lose frames early in a burst, and the rest of it then waits for nothing.
/// One thread.
class CatchUp {
 public:
  using Clock = std::chrono::steady_clock;

  /// `patient`: what is not read in time is not lost. Otherwise the frames of a burst wait only
  /// until kTrial after its beginning.
  explicit CatchUp(bool patient) : patient_(patient) {}

  /// Until when the frame may wait; not later than `arrived` if it is not part of a burst. At most
  /// kMost later. `time`: the frame's place on the feed's line.
  Clock::time_point deadline(std::chrono::microseconds time, Clock::time_point arrived);
  /// The last frame found no place until its deadline.
  void missed(Clock::time_point now);

  static constexpr std::chrono::seconds kMost{5};
  /// So long after the beginning of a burst a frame without a place does not yet say that the
  /// encodes are too slow.
  static constexpr std::chrono::milliseconds kTrial{250};

 private:
  const bool patient_;
  std::optional<Clock::time_point> origin_;  // the deadline of a frame with the time 0
  Clock::time_point last_;                   // when the last frame arrived
  Clock::time_point begun_;                  // when the latest burst began
  Clock::time_point until_;                  // when its frames no longer wait
};

}  // namespace framelane
