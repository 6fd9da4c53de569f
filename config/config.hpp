#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pipeline/base/rational.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

enum class LogFormat { kText, kJson };
enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };

struct LogConfig {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

struct AdminConfig {
  std::string listen = "127.0.0.1:9853";  ///< HOST:PORT, [V6]:PORT or unix:PATH; empty: none
};

/// Where a configuration is when nobody says.
inline constexpr const char* kDefaultConfigFile = "/etc/framelane/framelane.yaml";

/// device: auto | cpu | cuda | cuda:N
struct DeviceConfig {
  enum class Kind { kAuto, kCpu, kCuda } kind = Kind::kAuto;
  int index = 0;
};

/// The whole configuration, validated and with defaults, profiles and variables resolved. Feeds
/// are in the order of the file.
struct Config {
  LogConfig log;
  AdminConfig admin;
  DeviceConfig device;
  std::vector<FeedOptions> feeds;
};

/// One thing wrong with a configuration, printed as FILE:LINE:COLUMN: key.path: message.
struct Problem {
  std::string file;
  int line = 1;     ///< from 1
  int column = 1;   ///< from 1, in bytes
  std::string key;  ///< "feeds.gate.input.url"; empty for syntax errors
  std::string message;
};
std::string to_string(const Problem& problem);

struct LoadOptions {
  /// false (`check --no-env`): unset ${NAME} and unreadable ${file:…} are accepted and stand for
  /// an empty string.
  bool require_environment = true;
  /// Looks a variable up; getenv by default.
  std::function<std::optional<std::string>(const std::string&)> environment;
};

/// Either a configuration or every problem in it, in file order. Opens nothing but the file itself
/// and the ${file:…} it names. Expanded ${file:…} values and URL passwords go to register_secret.
using LoadResult = std::variant<Config, std::vector<Problem>>;
LoadResult load_config_file(const std::string& path, const LoadOptions& options = {});
LoadResult load_config_text(std::string_view text, const std::string& file_name,
                            const LoadOptions& options = {});

/// `admin.listen` alone, whatever else the file holds: a typo made after the start says nothing
/// about the daemon that runs. The default where the file does not tell; why it does not (it cannot
/// be read, it is no YAML, the value is no address) goes to `problems`.
std::string load_admin_listen(const std::string& path, std::vector<Problem>& problems);

/// Durations ("500ms", "10s", "5m", "1h", "7d"), bit rates ("2M", decimal), sizes ("80G" bytes,
/// decimal) and frame rates ("30", "29.97", "30000/1001"): nothing when the text is not one.
/// 29.97, 23.976 and 59.94 mean the NTSC rates they abbreviate (30000/1001 …).
std::optional<std::chrono::microseconds> parse_duration(std::string_view text);
std::optional<std::int64_t> parse_bitrate(std::string_view text);
std::optional<std::int64_t> parse_size(std::string_view text);
std::optional<Rational> parse_frame_rate(std::string_view text);

/// Expands the ${…} of one scalar as the configuration does (`transcode` uses it for its URLs).
/// On failure returns nothing and says why in `problem`.
std::optional<std::string> expand_variables(std::string_view text, const LoadOptions& options,
                                            std::string& problem);

/// JSON Schema (2020-12) of the configuration, pretty-printed. Generated from the same key tables
/// the reader uses, so that the two cannot differ.
std::string config_schema();

}  // namespace framelane
