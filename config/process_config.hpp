#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/admin_token.hpp"

namespace framelane {

class TlsCertificate;

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
  std::vector<AdminToken> tokens{};       ///< none: whoever can connect may ask for everything
  std::shared_ptr<const TlsCertificate> certificate{};  ///< null: no TLS
  bool insecure = false;  ///< other machines may connect although there are no tokens
};

struct RecorderConfig {
  std::int64_t memory = 64'000'000;  ///< in bytes; 0: nothing is recorded
  std::string directory{};           ///< where traces are written by themselves; empty: nowhere

  friend bool operator==(const RecorderConfig&, const RecorderConfig&) = default;
};

struct WatchdogConfig {
  /// How many threads may be stuck in calls before the process ends itself; nothing: any number.
  std::optional<int> max_abandoned;

  friend bool operator==(const WatchdogConfig&, const WatchdogConfig&) = default;
};

/// Where events are sent.
struct HookConfig {
  std::string name{};  ///< in the log and in metrics; no other hook has it
  std::string url{};
  std::string secret{};  ///< with which deliveries are signed; empty: they are not
  bool on_segment = false;
  bool on_incident = false;
  std::chrono::milliseconds timeout{10'000};  ///< of one try

  friend bool operator==(const HookConfig&, const HookConfig&) = default;
};

}  // namespace framelane
