#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "config/process_config.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {

/// The form of a log line.
/// kPlain: "2026-01-02T03:04:05.678Z info  message".
/// kJson: an object with ts, level, msg; and with what is known of these: feed, encode, output,
/// code and reason (log::Fault). What says the first three is then not in msg. kJournal:
/// "<6>message" with a syslog priority; the journal itself adds the time.
enum class LogStyle { kPlain, kJson, kJournal };

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::chrono::system_clock::time_point time;
  /// What is about a feed, or its encode or output, begins with "feed NAME: ", "feed NAME: encode
  /// NAME: " or "feed NAME: output NAME: "; of a rendition with "feed NAME: output NAME (ENCODE):
  /// ".
  std::string_view message;
  log::Fault fault{};
};

/// The text with its line ends, and all else that would control a terminal or turn the direction of
/// writing, escaped: "\n", "\x1b".
std::string without_controls(std::string_view text);

/// One log line with its newline. All texts go through redact(), and control characters are
/// escaped, so that text from a camera can neither forge a log line nor control a terminal.
std::string format_log_line(LogStyle style, const LogLine& line);

/// The line as journald takes it on its socket (systemd's "Journal Native Protocol"), with the
/// fields FEED, ENCODE, OUTPUT and CODE as far as they are known. Empty if it is about no feed.
std::string journal_record(const LogLine& line);

}  // namespace framelane
