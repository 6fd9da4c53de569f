#pragma once

#include <chrono>

namespace framelane {

/// After these times a feed treats a call or a thread as stuck. Tests pass shorter ones.
struct FeedDeadlines {
  /// A thread that runs for longer than this after a cancel is stuck. An output may take up to a
  /// second of it, for its trailer.
  std::chrono::milliseconds cancel{1500};
  /// A call that has ignored its deadline for this long will not return by itself.
  std::chrono::milliseconds ignored{5000};
  /// A call on a GPU that takes longer is overdue: a normal one takes milliseconds.
  std::chrono::milliseconds stage_call{10'000};
};

}  // namespace framelane
