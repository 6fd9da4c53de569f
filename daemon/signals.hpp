#pragma once

#include <chrono>
#include <optional>

namespace framelane {

/// Blocks SIGINT, SIGTERM and SIGHUP in this thread and in every thread that it starts, so that
/// wait_signal receives them. Ignores SIGPIPE and SIGXFSZ. To be called before any other thread
/// starts.
void block_signals();

/// Waits for one of the blocked signals, `timeout` at most; nothing if none comes. Main thread.
std::optional<int> wait_signal(std::chrono::milliseconds timeout);

/// From now on a further SIGINT or SIGTERM ends the process at once.
void second_signal_ends_process();

}  // namespace framelane
