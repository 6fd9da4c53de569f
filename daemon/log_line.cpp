#include "daemon/log_line.hpp"

#include <syslog.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "pipeline/base/redact.hpp"
#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames{"trace", "debug", "info", "warn", "error"};
constexpr std::array<int, 5> kPriorities{LOG_DEBUG, LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR};

/// The bytes of the UTF-8 character at the begin of the text, if a terminal would act on it: the
/// controls U+0080 to U+009F, and those that turn the direction of writing. Else 0.
std::size_t control_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  if (byte(0) < ' ' || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  const bool marks = byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f);   // U+200E, U+200F
  const bool embeds = byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae;    // U+202A to U+202E
  const bool isolates = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;  // U+2066 to U+2069
  return byte(0) == 0xe2 && (marks || embeds || isolates) ? 3 : 0;
}

std::string without_controls(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\n') {
      result += "\\n";
      ++i;
      continue;
    }
    const std::size_t bytes = control_bytes(text.substr(i));
    if (bytes == 0) result += text[i++];
    for (std::size_t end = i + bytes; i < end; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      result.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
  return result;
}

std::string json_line(std::string_view level, std::chrono::system_clock::time_point time,
                      std::string_view message) {
  constexpr std::string_view kFeed = "feed ";
  nlohmann::ordered_json line{{"ts", utc_time(time)}, {"level", level}};
  const auto colon = message.find(": ");
  if (message.starts_with(kFeed) && colon != std::string_view::npos) {
    const auto name = message.substr(kFeed.size(), colon - kFeed.size());
    if (name.find(' ') == std::string_view::npos) {
      line["feed"] = name;
      message.remove_prefix(colon + 2);
    }
  }
  line["msg"] = message;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string format_log_line(LogStyle style, LogLevel level,
                            std::chrono::system_clock::time_point time, std::string_view message) {
  while (!message.empty() && (message.back() == '\n' || message.back() == '\r')) {
    message.remove_suffix(1);
  }
  const std::string safe = redact(message);
  const auto index = static_cast<std::size_t>(level);
  const std::string_view name = kLevelNames[index];
  switch (style) {
    case LogStyle::kJson:
      return json_line(name, time, safe) + "\n";
    case LogStyle::kJournal:
      return "<" + std::to_string(kPriorities[index]) + ">" + without_controls(safe) + "\n";
    case LogStyle::kPlain:
      break;
  }
  std::string line = utc_time(time);
  line.append(" ").append(name).append(6 - name.size(), ' ');
  return line.append(without_controls(safe)).append("\n");
}

}  // namespace framelane
