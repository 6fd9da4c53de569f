#pragma once

#include <chrono>
#include <string>

#include "config/process_config.hpp"

namespace framelane {

class AdminServer;
class Supervisor;

/// True if more threads are stuck in calls that do not return than the configuration allows. Any
/// thread.
bool too_many_stuck(const WatchdogConfig& config);
/// "3 threads are stuck in calls that do not return": how many are now.
std::string stuck_text();

/// Tells systemd that the supervisor's loop and the admin listener's loop turn. The listener is
/// asked over HTTP. The caller's loop drives this: a timer of its own would go on feeding the
/// watchdog of a process that hangs. One thread.
class Watchdog {
 public:
  /// Both outlive it; `admin` may be null. Reads WATCHDOG_USEC as sd_watchdog_enabled(3) does. If
  /// systemd does not watch this process, feed() does nothing.
  Watchdog(const Supervisor& supervisor, const AdminServer* admin);

  /// To be called often. Three times in systemd's interval it checks both loops, and sends
  /// WATCHDOG=1 if both turn; if not, it logs which does not. Blocks for up to 2 s while the
  /// listener does not answer.
  void feed(std::chrono::steady_clock::time_point now);
  /// The listener is asked no more: framelane ends itself, and /healthz says so.
  void forget_listener() { admin_ = nullptr; }

 private:
  bool healthy() const;

  const Supervisor& supervisor_;
  const AdminServer* admin_;
  std::chrono::microseconds interval_{0};       // 0: systemd does not watch
  std::chrono::steady_clock::time_point next_;  // check
};

}  // namespace framelane
