#include "pipeline/base/fault_log.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// The text with "0" for each number: the next segment's name, say, makes no other cause.
std::string without_numbers(std::string_view text) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) {
      result += text[i];
    } else if (i == 0 || !is_digit(text[i - 1])) {
      result += '0';
    }
  }
  return result;
}

}  // namespace

void FaultLog::failed(std::string_view code, const std::string& cause,
                      const std::string& consequence, Clock::time_point now) {
  ++failures_;
  for (const RateLimiter::Repeats& repeats : repeats_.take_ended(now)) {
    const log::FaultScope fault(codes_[static_cast<std::size_t>(repeats.tag)], repeats.line);
    log::warn("{}: {} ({} more {} in {} s)", subject_, repeats.line, repeats.times,
              repeats.times == 1 ? "time" : "times",
              std::chrono::round<std::chrono::seconds>(repeats.span).count());
  }
  if (repeats_.admit(std::hash<std::string>()(without_numbers(cause)), number_of(code), cause,
                     now)) {
    const log::FaultScope fault(code, cause);
    log::warn("{}: {}; {}", subject_, cause, consequence);
  }
}

int FaultLog::number_of(std::string_view code) {
  const auto known = std::ranges::find(codes_, code);
  const auto number = known - codes_.begin();
  if (known == codes_.end()) codes_.push_back(code);
  return static_cast<int>(number);
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
