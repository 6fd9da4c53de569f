#include "daemon/watchdog.hpp"

#include <systemd/sd-daemon.h>

#include <cstdint>

#include "daemon/admin_server.hpp"
#include "daemon/http_client.hpp"
#include "daemon/supervisor.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {

bool too_many_stuck(const WatchdogConfig& config) {
  return config.max_abandoned &&
         threads_stuck() > static_cast<std::uint64_t>(*config.max_abandoned);
}

std::string stuck_text() {
  const std::uint64_t stuck = threads_stuck();
  if (stuck == 1) return "1 thread is stuck in a call that does not return";
  return std::to_string(stuck) + " threads are stuck in calls that do not return";
}

Watchdog::Watchdog(const Supervisor& supervisor, const AdminServer* admin)
    : supervisor_(supervisor), admin_(admin) {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) > 0) {
    interval_ = std::chrono::microseconds(microseconds) / 3;
  }
}

void Watchdog::feed(std::chrono::steady_clock::time_point now) {
  if (interval_.count() == 0 || now < next_) return;
  next_ = now + interval_;
  if (healthy()) sd_notify(0, "WATCHDOG=1");
}

bool Watchdog::healthy() const {
  if (supervisor_.heartbeat_age() > Supervisor::kMaxHeartbeatAge) {
    log::error(
        "the supervisor's loop has not turned for {} s",
        std::chrono::duration_cast<std::chrono::seconds>(supervisor_.heartbeat_age()).count());
    return false;
  }
  if (admin_ == nullptr) return true;
  try {
    const int status =
        http_get(admin_->address(), "/healthz", std::chrono::seconds(2), admin_->uses_tls()).status;
    if (status != 200) log::error("the admin listener answers /healthz with {}", status);
    return status == 200;
  } catch (const std::exception& error) {
    log::error("the admin listener does not answer: {}", error.what());
    return false;
  }
}

}  // namespace framelane
