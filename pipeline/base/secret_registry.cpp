#include "pipeline/base/secret_registry.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

namespace framelane {
namespace {

using std::string_view;

/// Shorter secrets are not looked for in text, see blank().
constexpr std::size_t kShortest = 4;

/// A text may have been cut off inside a secret: FFmpeg cuts long URLs. So many characters of one
/// at the end of a text are taken for it.
constexpr std::size_t kLeastOfCut = 9;

/// The byte that "%XX" at text[at] stands for; nothing if there is no such code.
std::optional<char> hex_byte(string_view text, std::size_t at) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (at + 2 >= text.size() || text[at] != '%') return std::nullopt;
  const int high = digit(text[at + 1]);
  const int low = digit(text[at + 2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

/// How many characters at the start of `text` spell `secret`, each plain or percent-encoded; 0 if
/// they do not. If the text ends within the secret, enough of it counts as well.
std::size_t spelled(string_view text, string_view secret) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const bool cut = at >= text.size() || (text[at] == '%' && at + 2 >= text.size());
    if (cut && i >= kLeastOfCut) return text.size();
    if (at >= text.size()) return 0;
    const auto byte = hex_byte(text, at);
    if (byte == secret[i]) {
      // "%25" is either an encoded '%' or three plain characters: the rest of the text decides.
      if (secret[i] == '%') {
        const std::size_t rest = spelled(text.substr(at + 3), secret.substr(i + 1));
        if (rest > 0 || i + 1 == secret.size()) return at + 3 + rest;
      } else {
        at += 3;
        continue;
      }
    }
    if (text[at] != secret[i] && !(text[at] == '+' && secret[i] == ' ')) return 0;
    ++at;
  }
  return at;
}

}  // namespace

SecretRegistry& SecretRegistry::instance() {
  // Never destroyed: threads of libraries may still log while the process exits.
  static SecretRegistry& instance = *new SecretRegistry;
  return instance;
}

void SecretRegistry::add(string_view secret) {
  if (secret.empty() || secret == kSecretMask) return;
  const std::unique_lock lock(mutex_);
  if (secret.size() < kShortest) {
    short_.emplace(secret);
    return;
  }
  auto& bucket = by_first_[static_cast<unsigned char>(secret.front())];
  if (std::find(bucket.begin(), bucket.end(), secret) != bucket.end()) return;
  bucket.emplace_back(secret);
  // The longest comes first, so that a secret that begins with another one is masked whole.
  std::stable_sort(bucket.begin(), bucket.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string SecretRegistry::blank(string_view text) const {
  std::string out;
  out.reserve(text.size());
  const std::shared_lock lock(mutex_);
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t length = match(text, i)) {
      out += kSecretMask;
      i += length;
    } else {
      out += text[i++];
    }
  }
  return out;
}

bool SecretRegistry::is_short_secret(string_view value) const {
  if (value.empty() || value.size() >= 3 * kShortest) return false;  // each byte as %XX
  const std::shared_lock lock(mutex_);
  return short_.contains(value) || short_.contains(percent_decoded(value));
}

std::size_t SecretRegistry::match(string_view text, std::size_t at) const {
  const auto in_bucket = [&](char first) -> std::size_t {
    for (const auto& secret : by_first_[static_cast<unsigned char>(first)]) {
      if (const std::size_t length = spelled(text.substr(at), secret)) return length;
    }
    return 0;
  };
  if (const std::size_t length = in_bucket(text[at])) return length;
  if (text[at] == '+') return in_bucket(' ');
  const auto byte = hex_byte(text, at);
  return byte ? in_bucket(*byte) : 0;
}

std::string percent_decoded(string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = hex_byte(text, i);
    result += byte.value_or(text[i]);
    if (byte) i += 2;
  }
  return result;
}

}  // namespace framelane
