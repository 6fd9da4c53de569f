#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "config/process_config.hpp"

namespace framelane {

/// The form of a log line.
/// kPlain: "2026-01-02T03:04:05.678Z info  message".
/// kJson: an object with ts, level, msg, and feed if the message begins with "feed NAME: ".
/// kJournal: "<6>message" with a syslog priority; the journal itself adds the time.
enum class LogStyle { kPlain, kJson, kJournal };

/// One log line with its newline. The message goes through redact(), and control characters are
/// escaped, so that text from a camera can neither forge a log line nor control a terminal.
std::string format_log_line(LogStyle style, LogLevel level,
                            std::chrono::system_clock::time_point time, std::string_view message);

}  // namespace framelane
