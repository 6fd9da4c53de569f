#include "pipeline/fault_log.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace framelane {

void FaultLog::failed(const std::string& cause, const std::string& consequence) {
  const auto now = std::chrono::steady_clock::now();
  ++failures_;
  if (cause == cause_ && now - logged_at_ < kRepeatEvery) {
    ++suppressed_;
    return;
  }
  const int repeats = cause == cause_ ? std::exchange(suppressed_, 0) : (suppressed_ = 0);
  cause_ = cause;
  logged_at_ = now;
  if (repeats > 0) {
    spdlog::warn("{}: {}; {} ({} times since the last line)", subject_, cause, consequence,
                 repeats + 1);
  } else {
    spdlog::warn("{}: {}; {}", subject_, cause, consequence);
  }
}

bool FaultLog::recovered(std::string_view what) {
  if (failures_ == 0) return false;
  spdlog::info("{}: running again after {} failed {}{}{}{}", subject_, failures_,
               failures_ == 1 ? "try" : "tries", what.empty() ? "" : " (", what,
               what.empty() ? "" : ")");
  cause_.clear();
  failures_ = 0;
  suppressed_ = 0;
  return true;
}

}  // namespace framelane
