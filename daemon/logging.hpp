#pragma once

#include "config/config.hpp"

namespace framelane {

/// Sets up the process's logging on stderr, text or JSON, everything through redact(): spdlog's
/// default logger, and FFmpeg's own log, whose lines carry "ffmpeg" and are rate-limited: a line
/// that repeats is written once and then summed up ("repeated 812 times in 60 s"). Under journald
/// (JOURNAL_STREAM) the text form carries <N> priorities instead of time stamps. Main thread,
/// before any other; calling it again changes level and format.
void set_up_logging(const LogConfig& config);

}  // namespace framelane
