#pragma once

#include <fmt/core.h>

namespace framelane::log {

// Writes to the process's log, spdlog's default logger. A line reads "feed gate: what happened;
// what follows". Formats are fmt's and checked at compile time. Any thread. The formatting itself
// is compiled once, in write(): spdlog's templates would be compiled again in every file that logs.

enum class Level { kDebug, kInfo, kWarn, kError };

void write(Level level, fmt::string_view format, fmt::format_args arguments);

template <typename... T>
void debug(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::kDebug, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void info(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::kInfo, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void warn(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::kWarn, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void error(fmt::format_string<T...> format, T&&... arguments) {
  write(Level::kError, format, fmt::make_format_args(arguments...));
}

}  // namespace framelane::log
