#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace framelane {

/// How lines look. kText: "2026-01-02T03:04:05.678Z info  message"; kJson: an object with ts,
/// level, msg, and feed when the message begins with "feed NAME: "; kJournal: "<6>message", where
/// the journal keeps the time.
enum class LogStyle { kText, kJson, kJournal };

/// One log line with its newline, through redact(), control characters escaped, so that what a
/// camera sends can neither forge a line nor reach the terminal.
std::string format_log_line(LogStyle style, LogLevel level,
                            std::chrono::system_clock::time_point time, std::string_view message);

}  // namespace framelane
