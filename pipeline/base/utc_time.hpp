#pragma once

#include <chrono>
#include <string>

namespace framelane {

/// The time in ISO 8601, with milliseconds: "2026-01-02T03:04:05.678Z".
std::string utc_time(std::chrono::system_clock::time_point time);

}  // namespace framelane
