#pragma once

#include <chrono>

#include "daemon/admin_server.hpp"
#include "daemon/supervisor.hpp"

namespace framelane {

/// Tells systemd that the loops turn: the supervisor's, and the admin listener's by asking it. Not
/// a timer of its own, which would go on feeding the watchdog of a process that hangs. One thread.
class Watchdog {
 public:
  /// Both outlive it; `admin` may be null. Reads WATCHDOG_USEC as sd_watchdog_enabled(3) does:
  /// where nobody watches, feed() does nothing.
  Watchdog(const Supervisor& supervisor, const AdminServer* admin);

  /// Three times in the interval that systemd waits, when called often enough: says WATCHDOG=1, or
  /// logs what does not turn and says nothing. Blocks for 2 s when the listener does not answer.
  void feed();

 private:
  bool healthy() const;

  const Supervisor& supervisor_;
  const AdminServer* const admin_;
  std::chrono::microseconds interval_{0};  // 0: nobody watches
  std::chrono::steady_clock::time_point next_;
};

}  // namespace framelane
