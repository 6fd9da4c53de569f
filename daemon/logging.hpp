#pragma once

#include "config/process_config.hpp"

namespace framelane {

/// Sets up the process's logging: spdlog's default logger, FFmpeg's log and libsrt's, all to stderr
/// as text or JSON and through redact(). The libraries' lines begin with "ffmpeg: " or "srt: " and
/// are rate-limited: one that repeats is written once, and later its repeats are summed up
/// ("repeated 812 times in 60 s").
///
/// If stderr goes to journald (JOURNAL_STREAM), text lines have <N> priorities instead of time
/// stamps, and those about a feed go to journald's own socket instead, with fields.
///
/// Main thread, before any other thread starts. A further call, from any thread, changes level and
/// format.
void set_up_logging(const LogConfig& config);

}  // namespace framelane
