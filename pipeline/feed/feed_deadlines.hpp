#pragma once

#include <chrono>
#include <optional>

#include "pipeline/encode/encode.hpp"

namespace framelane {

/// How long a feed waits before it treats a thread or a call as stuck. Tests pass shorter times.
struct FeedDeadlines {
  /// What has to end may take so long to complete what it has in hand: a run that is stopped or
  /// restarted, an output that leaves. It is then cancelled.
  std::chrono::milliseconds drain{7500};
  /// An output that is replaced goes on until the keyframe at which the other one begins, but no
  /// longer than this. Cameras let minutes pass from one keyframe to the next when little moves.
  /// Until then the other one has nothing to begin with, and to end this one would only lose what
  /// comes. But where no keyframe comes at all, what it writes to must become free.
  std::chrono::milliseconds keyframe{300'000};
  /// A thread that runs for longer than this after a cancel is stuck. An output may take up to a
  /// second of it, for its trailer.
  std::chrono::milliseconds after_cancel{1500};
  /// A call that has ignored its deadline for this long will not return by itself.
  std::chrono::milliseconds after_deadline{5000};
  /// A call on a GPU that takes longer is overdue: a normal one takes milliseconds.
  std::chrono::milliseconds stage_call{10'000};
  /// Opening an encoder, or preparing a plan, may take this long: on a GPU newer than the build,
  /// kernels are compiled first.
  std::chrono::milliseconds prepare{60'000};
  /// Reading an encode's fonts and images may take this long. The feed waits for it.
  std::chrono::milliseconds overlay_files{10'000};
  /// A call of a live feed's encoder, or of a codec of sound, that takes longer is overdue.
  std::chrono::milliseconds encode_call = Encode::kCallLimit;
};

/// True if a call has been overdue for `after_deadline`. `since`: when it was first seen to be;
/// empty: it was not. The time runs from then, not from the call's deadline: after the process was
/// stopped for a while, every deadline has passed, and the calls have yet to notice.
inline bool is_stuck(bool overdue, std::optional<std::chrono::steady_clock::time_point>& since,
                     std::chrono::steady_clock::time_point now, const FeedDeadlines& deadlines) {
  if (!overdue) {
    since.reset();
    return false;
  }
  if (!since) since = now;
  return now - *since >= deadlines.after_deadline;
}

}  // namespace framelane
