#pragma once

#include <chrono>
#include <optional>
#include <thread>

namespace framelane {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 in this thread and in every thread that it starts, so
/// that wait_signal receives them. Ignores the other signals that mean nothing to framelane and
/// would end it (SIGPIPE, SIGUSR2, ...). To be called before any other thread starts.
void block_signals();

/// While it lives, SIGINT and SIGTERM end the process at once, whatever its threads wait for: there
/// is nothing to complete before the first feed starts. block_signals() comes first.
class StopsAtOnce {
 public:
  /// The exit status; empty: 128 + signal.
  explicit StopsAtOnce(std::optional<int> status);
  /// A signal that comes from now on waits for wait_signal.
  ~StopsAtOnce();
  StopsAtOnce(const StopsAtOnce&) = delete;
  StopsAtOnce& operator=(const StopsAtOnce&) = delete;

 private:
  std::jthread thread_;
};

/// Waits for one of the blocked signals, `timeout` at most; nothing if none comes. Main thread.
std::optional<int> wait_signal(std::chrono::milliseconds timeout);

/// From now on a further SIGINT or SIGTERM ends the process at once.
void second_signal_ends_process();

}  // namespace framelane
