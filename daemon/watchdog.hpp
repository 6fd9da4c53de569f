#pragma once

#include <chrono>

namespace framelane {

class AdminServer;
class Supervisor;

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

 private:
  bool healthy() const;

  const Supervisor& supervisor_;
  const AdminServer* const admin_;
  std::chrono::microseconds interval_{0};       // 0: systemd does not watch
  std::chrono::steady_clock::time_point next_;  // check
};

}  // namespace framelane
