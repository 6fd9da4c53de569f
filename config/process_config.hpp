#pragma once

#include <optional>
#include <string>

namespace framelane {

// The parts of a configuration that are for the whole process and not for a feed.

/// The configuration file if none is named.
inline constexpr const char* kDefaultConfigFile = "/etc/framelane/framelane.yaml";

enum class LogFormat { kPlain, kJson };
enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kPlain;

  friend bool operator==(const LogConfig&, const LogConfig&) = default;
};

struct AdminConfig {
  std::string listen = "127.0.0.1:9853";  ///< HOST:PORT, [V6]:PORT or unix:PATH; empty: none

  friend bool operator==(const AdminConfig&, const AdminConfig&) = default;
};

struct WatchdogConfig {
  /// How many threads may be stuck in calls before the process ends itself; nothing: any number.
  std::optional<int> max_abandoned;

  friend bool operator==(const WatchdogConfig&, const WatchdogConfig&) = default;
};

}  // namespace framelane
