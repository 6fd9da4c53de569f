#include "config/variables.hpp"

#include <algorithm>
#include <utility>

#include "config/problems.hpp"
#include "config/secret_file.hpp"
#include "pipeline/base/credential_names.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

constexpr std::string_view kFile = "file:";
constexpr std::string_view kDefault = ":-";

/// True if the environment variable's name says that it holds a secret. The shell's own names of
/// folders look alike.
bool names_secret(std::string_view name) {
  return name != "PWD" && name != "OLDPWD" && carries_credential(name, true);
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

/// Where a part of a text begins and ends.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The part of a URL before the '@', where user and password are; empty if there is none.
Span user_part(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return {};
  const std::size_t begin = scheme + 3;
  Span span{begin, begin};
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") {
      // A ${file:…} may contain slashes, which do not end the user part.
      i = std::min(text.find('}', i), text.size());
    } else if (text[i] == '@') {
      span.end = i;
    } else if (text[i] == '/' || text[i] == '?' || text[i] == '#') {
      break;
    }
  }
  return span;
}

/// Encodes everything but the unreserved characters (RFC 3986, 2.1).
std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kHex[byte >> 4U];
      encoded += kHex[byte & 15U];
    }
  }
  return encoded;
}

/// Expands one ${…}. `name` is the text between the braces.
class Placeholder {
 public:
  Placeholder(std::string_view name, const VariableScope& scope) : name_(name), scope_(scope) {}

  Expansion expand() const {
    if (name_ == "feed") return expand_name(scope_.feed, "inside feeds");
    if (name_ == "output") return expand_name(scope_.output, "inside outputs");
    if (name_.starts_with(kFile)) return expand_file();
    return expand_environment();
  }

 private:
  static Expansion failure(std::string problem) { return {"", true, {std::move(problem)}}; }

  Expansion missing(std::string problem) const {
    if (!scope_.options.require_environment) return {"", false};
    return failure(std::move(problem));
  }

  Expansion expand_name(const std::optional<std::string>& value, std::string_view where) const {
    if (!value) {
      return failure("${" + std::string(name_) + "} has a value only " + std::string(where));
    }
    return {*value, !scope_.syntax_only};
  }

  Expansion expand_environment() const {
    const std::size_t split = name_.find(kDefault);
    const std::string name(name_.substr(0, split));
    if (!is_variable_name(name)) {
      // The text is not shown: it may be a password that contains "${".
      return failure(
          "has a ${} that is none of ${NAME}, ${NAME:-default}, ${file:PATH}, ${feed} and "
          "${output}; write $$ for a plain $");
    }
    if (name_.find('$') != std::string_view::npos) {
      return failure("the default of ${" + name + "} must not contain variables");
    }
    if (scope_.syntax_only) return {"", false};
    std::optional<std::string> value = look_up_variable(name, scope_.options);
    if (split != std::string_view::npos && (!value || value->empty())) {
      value = name_.substr(split + kDefault.size());
    }
    if (value) {
      if (names_secret(name)) register_secret(*value);
      return {*std::move(value), true};
    }
    return missing("the environment variable " + name + " is not set; set it, or write ${" + name +
                   ":-default}");
  }

  Expansion expand_file() const {
    const std::string path(name_.substr(kFile.size()));
    if (path.empty()) return failure("${file:} names no file; write ${file:PATH}");
    if (scope_.syntax_only) return {"", false};
    SecretFile file = read_secret_file(path, scope_.options);
    if (!file.problem.empty()) return missing(std::move(file.problem));
    return secret(path, std::move(file.text));
  }

  Expansion secret(const std::string& path, std::string text) const {
    if (!text.empty() && text.back() == '\n') text.pop_back();
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
    };
    if (std::any_of(text.begin(), text.end(), is_control)) {
      return failure(
          "the secret file " + in_quotes(path) +
          " contains a control character, perhaps because a line ends with CR LF or there is "
          "a second line; it must be one line of text, with or without an LF at its end");
    }
    register_secret(text);
    return {std::move(text), true};
  }

  std::string_view name_;
  const VariableScope& scope_;
};

}  // namespace

Expansion expand(std::string_view text, const VariableScope& scope) {
  const Span user = user_part(text);
  Expansion result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      result.text += text[i];
    } else if (text.substr(i, 2) == "$$") {
      result.text += '$';
      ++i;
    } else if (text.substr(i, 2) == "${") {
      const std::size_t end = text.find('}', i);
      if (end == std::string_view::npos) {
        result.problems.emplace_back("has a \"${\" that no \"}\" closes; write $$ for a plain $");
        break;
      }
      Expansion part = Placeholder(text.substr(i + 2, end - i - 2), scope).expand();
      result.problems.insert(result.problems.end(), part.problems.begin(), part.problems.end());
      result.complete = result.complete && part.complete;
      const bool encode = i >= user.begin && i < user.end;
      result.text += encode ? percent_encode(part.text) : part.text;
      i = end;
    } else {
      result.problems.emplace_back("has a lone $; write $$ for a plain $");
    }
  }
  return result;
}

std::optional<std::string> expand_variables(std::string_view text, const LoadOptions& options,
                                            std::string& problem) {
  Expansion result = expand(text, VariableScope{options, std::nullopt, std::nullopt, false});
  problem.clear();
  for (const std::string& one : result.problems) problem += (problem.empty() ? "" : "; ") + one;
  if (!problem.empty()) return std::nullopt;
  return std::move(result.text);
}

}  // namespace framelane
