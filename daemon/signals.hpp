#pragma once

#include <chrono>
#include <optional>

namespace framelane {

/// Blocks SIGINT, SIGTERM and SIGHUP in this thread and all that it starts, for wait_signal to
/// receive, and ignores SIGPIPE and SIGXFSZ. Before any other thread.
void block_signals();

/// One of the blocked signals; nothing when none comes within `timeout`. Main thread.
std::optional<int> wait_signal(std::chrono::milliseconds timeout);

/// From now on a further SIGINT or SIGTERM ends the process at once.
void second_signal_ends_process();

}  // namespace framelane
