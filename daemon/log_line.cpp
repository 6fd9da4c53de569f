#include "daemon/log_line.hpp"

#include <fmt/core.h>
#include <syslog.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/json_text.hpp"
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

/// The text with what `escape` makes of each character that a terminal would act on.
template <typename Escape>
std::string with_controls_escaped(std::string_view text, const Escape& escape) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = control_bytes(text.substr(i));
    if (bytes == 0) {
      result += text[i++];
    } else {
      result += escape(text.substr(i, bytes));
      i += bytes;
    }
  }
  return result;
}

/// The escape of such a character in a string of JSON.
std::string as_json(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  unsigned code = byte(0);
  if (character.size() == 2) code = (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu);
  if (character.size() == 3) {
    code = (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  }
  return fmt::format("\\u{:04x}", code);
}

/// What a message is about; empty if it is about nothing of that kind.
struct Subject {
  std::string_view feed;
  std::string_view encode;
  std::string_view output;
  std::string_view rest;  ///< of the message
};

/// Takes "KIND NAME: " from the begin of a message, if it begins so; returns the name. With `part`
/// also "KIND NAME (PART): ".
std::string_view take_name(std::string_view& message, std::string_view kind,
                           std::string_view* part = nullptr) {
  if (!message.starts_with(kind)) return {};
  const std::string_view rest = message.substr(kind.size());
  const std::size_t colon = rest.find(": ");
  std::string_view name = rest.substr(0, colon);
  std::string_view inside;
  const std::size_t open = name.find(" (");
  if (part != nullptr && open != name.npos && name.ends_with(')')) {
    inside = name.substr(open + 2, name.size() - open - 3);
    name = name.substr(0, open);
  }
  const auto is_name = [](std::string_view text) { return text.find(' ') == text.npos; };
  if (colon == std::string_view::npos || !is_name(name) || !is_name(inside)) return {};
  message = rest.substr(colon + 2);
  if (!inside.empty()) *part = inside;
  return name;
}

Subject subject_of(std::string_view message) {
  Subject subject{{}, {}, {}, message};
  subject.feed = take_name(subject.rest, "feed ");
  if (subject.feed.empty()) return subject;
  subject.encode = take_name(subject.rest, "encode ");
  if (subject.encode.empty()) {
    subject.output = take_name(subject.rest, "output ", &subject.encode);  // of a rendition
  }
  return subject;
}

std::string_view without_newlines(std::string_view message) {
  while (!message.empty() && (message.back() == '\n' || message.back() == '\r')) {
    message.remove_suffix(1);
  }
  return message;
}

std::string json_line(const LogLine& line, std::string_view message) {
  nlohmann::ordered_json json{{"ts", utc_time(line.time)},
                              {"level", kLevelNames[static_cast<std::size_t>(line.level)]}};
  const auto add = [&json](const char* key, std::string_view value) {
    if (!value.empty()) json[key] = value;
  };
  const Subject subject = subject_of(message);
  add("feed", subject.feed);
  add("encode", subject.encode);
  add("output", subject.output);
  add("code", line.fault.code);
  add("reason", redact(line.fault.reason));
  json["msg"] = subject.rest;
  return with_controls_escaped(json_text(json), as_json);
}

int priority_of(LogLevel level) { return kPriorities[static_cast<std::size_t>(level)]; }

}  // namespace

std::string without_controls(std::string_view text) {
  return with_controls_escaped(text, [](std::string_view character) {
    if (character == "\n") return std::string("\\n");
    std::string escaped;
    for (const char byte : character) {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    return escaped;
  });
}

std::string format_log_line(LogStyle style, const LogLine& line) {
  const std::string safe = redact(without_newlines(line.message));
  switch (style) {
    case LogStyle::kJson:
      return json_line(line, safe) + "\n";
    case LogStyle::kJournal:
      return "<" + std::to_string(priority_of(line.level)) + ">" + without_controls(safe) + "\n";
    case LogStyle::kPlain:
      break;
  }
  const std::string_view level = kLevelNames[static_cast<std::size_t>(line.level)];
  std::string text = utc_time(line.time);
  text.append(" ").append(level).append(6 - level.size(), ' ');
  return text.append(without_controls(safe)).append("\n");
}

std::string journal_record(const LogLine& line) {
  if (subject_of(line.message).feed.empty()) return {};
  const std::string message = without_controls(redact(without_newlines(line.message)));
  const Subject subject = subject_of(message);
  std::string record;
  // Without line ends, which without_controls() has taken out, a field is NAME=VALUE and a line
  // end.
  const auto add = [&record](std::string_view name, std::string_view value) {
    if (!value.empty()) record.append(name).append("=").append(value).append("\n");
  };
  add("MESSAGE", message);
  add("PRIORITY", std::to_string(priority_of(line.level)));
  add("SYSLOG_IDENTIFIER", "framelane");
  add("FEED", subject.feed);
  add("ENCODE", subject.encode);
  add("OUTPUT", subject.output);
  add("CODE", line.fault.code);
  return record;
}

}  // namespace framelane
