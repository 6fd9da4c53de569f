#pragma once

#include <fmt/core.h>

#include <string_view>

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

/// What a line says besides its text, for whoever sorts log lines by their causes.
struct Fault {
  std::string_view code;    ///< a name of labels.hpp, as the metrics have it: "refused"
  std::string_view reason;  ///< the cause alone, as the API shows it
};

/// While it exists, the lines that this thread writes are about this fault. The texts outlive it.
class FaultScope {
 public:
  FaultScope(std::string_view code, std::string_view reason);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
};

/// The fault that the line of this thread is about; both texts are empty if it is about none. For
/// the log's sink, which runs on the thread that writes.
Fault present_fault();

}  // namespace framelane::log
