#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace framelane {

/// The time in ISO 8601, with milliseconds: "2026-01-02T03:04:05.678Z".
std::string utc_time(std::chrono::system_clock::time_point time);

/// Reads a time as RFC 3339 writes it, from the years 1970 to 2199: "2026-01-02T03:04:05.678Z",
/// "2026-01-02T04:04:05+01:00". What is finer than a millisecond is left out. Nothing if it is
/// wrong.
std::optional<std::chrono::system_clock::time_point> parse_utc_time(std::string_view text);

}  // namespace framelane
