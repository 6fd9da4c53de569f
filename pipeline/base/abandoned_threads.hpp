#pragma once

#include <atomic>
#include <cstdint>

namespace framelane {

/// Threads of this process that were left behind because a call did not return, since its start.
/// After the first, the process must end without destroying its objects, which such a thread may
/// still use. Any thread.
std::uint64_t threads_abandoned();
/// Those of them whose call has not returned yet. Any thread.
std::uint64_t threads_stuck();

/// Whether a thread was abandoned. Whoever may abandon it and the thread itself share the
/// ownership.
class AbandonableThread {
 public:
  /// Counts it, unless it has ended or is counted. Any thread.
  void abandon();
  /// The last thing the thread does: it is stuck no more.
  void end();

 private:
  enum class State { kRuns, kAbandoned, kEnded };
  std::atomic<State> state_{State::kRuns};
};

}  // namespace framelane
