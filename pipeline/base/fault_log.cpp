#include "pipeline/base/fault_log.hpp"

#include <functional>

#include "pipeline/base/log.hpp"

namespace framelane {

void FaultLog::failed(const std::string& cause, const std::string& consequence,
                      Clock::time_point now) {
  ++failures_;
  for (const RateLimiter::Repeats& repeats : repeats_.take_ended(now)) {
    log::warn("{}: {} ({} more {} in {} s)", subject_, repeats.line, repeats.times,
              repeats.times == 1 ? "time" : "times",
              std::chrono::round<std::chrono::seconds>(repeats.span).count());
  }
  if (repeats_.admit(std::hash<std::string>()(cause), static_cast<int>(log::Level::kWarn), cause,
                     now)) {
    log::warn("{}: {}; {}", subject_, cause, consequence);
  }
}

bool FaultLog::recovered(std::string_view what) {
  if (failures_ == 0) return false;
  log::info("{}: running again after {} failed {}{}{}{}", subject_, failures_,
            failures_ == 1 ? "try" : "tries", what.empty() ? "" : " (", what,
            what.empty() ? "" : ")");
  repeats_ = RateLimiter(kRepeatWindow);
  failures_ = 0;
  return true;
}

}  // namespace framelane
