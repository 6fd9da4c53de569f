#pragma once

#include <fmt/core.h>

namespace framelane::log {

// The process's log, which is spdlog's default logger: `feed gate: what happened; what follows`.
// Formats as fmt does, with the format checked at compile time. Any thread. Formatting is compiled
// once, in write(): spdlog's own templates would make their code anew in every file that logs.

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
