#include "pipeline/base/redact.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "pipeline/base/credential_names.hpp"
#include "pipeline/base/secret_registry.hpp"

namespace framelane {
namespace {

using std::string_view;

/// Characters that end a sentence or a quotation, and are not taken as part of a URL or a value.
constexpr string_view kClosers = "'\").,:;]}|>";

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

string_view slice(string_view text, Span span) {
  return text.substr(span.begin, span.end - span.begin);
}

// ASCII, whatever the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_blank(char c) { return static_cast<unsigned char>(c) <= ' '; }
bool all_digits(string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

/// RFC 4648, section 4.
std::string base64(string_view bytes) {
  constexpr string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

enum class Host { kNone, kName, kDottedName, kAddress };

/// What kind of HOST[:PORT] the text could be. A name with a port counts as dotted, since both show
/// that it is more than a word. A bare number is no host, although resolvers accept one.
Host host_kind(string_view text) {
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    return close == string_view::npos ? Host::kNone : Host::kAddress;
  }
  while (!text.empty() && kClosers.find(text.back()) != string_view::npos) text.remove_suffix(1);
  const auto colon = text.rfind(':');
  const bool has_port = colon != string_view::npos;
  if (has_port && !all_digits(text.substr(colon + 1))) return Host::kNone;
  const string_view name = text.substr(0, colon);
  const auto is_name_byte = [](char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || (c & 0x80) != 0;
  };
  if (name.empty() || all_digits(name)) return Host::kNone;
  if (!std::all_of(name.begin(), name.end(), is_name_byte)) return Host::kNone;
  const auto dots = std::count(name.begin(), name.end(), '.');
  const bool numeric =
      std::all_of(name.begin(), name.end(), [](char c) { return is_digit(c) || c == '.'; });
  if ((numeric && dots == 3) || lowered(name) == "localhost") return Host::kAddress;
  return has_port || dots > 0 ? Host::kDottedName : Host::kName;
}

/// The user information of a URL: from `begin` to its '@', if it has one. A password may hold a
/// plain '@', '/', '?' or '#', which RFC 3986 does not allow. If the URL can then be read in two
/// ways, what could be a password is taken for one: it is better to show less of a path.
std::optional<Span> user_info(string_view url, std::size_t begin) {
  const auto last_at = url.rfind('@');
  if (last_at == string_view::npos || last_at < begin) return std::nullopt;
  const std::size_t stop = std::min(url.find_first_of("/?#", begin), url.size());
  auto at = url.substr(0, stop).rfind('@');
  if (at != string_view::npos && at < begin) at = string_view::npos;
  const bool has_user = at != string_view::npos;
  const string_view host =
      url.substr(has_user ? at + 1 : begin, stop - (has_user ? at + 1 : begin));
  const auto found = [&](std::size_t end) -> std::optional<Span> {
    if (end == begin) return std::nullopt;  // udp://@239.0.0.1:5000 means multicast
    return Span{begin, end};
  };

  if (has_user && url.substr(begin, at - begin) == kSecretMask) return found(at);
  if (host_kind(host) == Host::kAddress) return has_user ? found(at) : std::nullopt;
  // A bare name without ':' holds no password. It is a user only if a later '@', before the query,
  // is followed by more than a word.
  const bool bare =
      !has_user && host_kind(host) != Host::kNone && host.find(':') == string_view::npos;
  const Host wanted = bare ? Host::kDottedName : Host::kName;
  const std::size_t limit = bare ? std::min(url.find('?', begin), url.size()) : url.size();
  for (auto later = url.substr(0, limit).rfind('@'); later != string_view::npos && later > stop;
       later = url.substr(0, later).rfind('@')) {
    const std::size_t end = std::min(url.find_first_of("/?#@", later + 1), url.size());
    if (host_kind(url.substr(later + 1, end - later - 1)) >= wanted) return found(later);
  }
  if (has_user) return found(at);
  if (host_kind(host) != Host::kNone) return std::nullopt;
  return found(last_at);
}

bool is_network_scheme(string_view word) {
  static constexpr std::array<string_view, 26> kSchemes{
      "ftp",  "gopher", "gophers", "http",  "https",  "icecast", "mms", "mmsh", "mmst",
      "rtmp", "rtmpe",  "rtmps",   "rtmpt", "rtmpte", "rtmpts",  "rtp", "rtsp", "rtsps",
      "sftp", "srt",    "srtp",    "tcp",   "tls",    "udp",     "ws",  "wss"};
  return std::find(kSchemes.begin(), kSchemes.end(), lowered(word)) != kSchemes.end();
}

/// The word that ends before text[end] and begins at `floor` or later: letters, digits and the
/// characters in `also`.
string_view word_before(string_view text, std::size_t end, string_view also,
                        std::size_t floor = 0) {
  std::size_t begin = end;
  while (begin > floor && (is_letter(text[begin - 1]) || is_digit(text[begin - 1]) ||
                           also.find(text[begin - 1]) != string_view::npos)) {
    --begin;
  }
  return text.substr(begin, end - begin);
}

/// The end of the URL whose scheme ends at text[colon]: at white space or a double quote, unless
/// the `whole` text is the URL, or where the next URL begins.
std::size_t url_end(string_view text, std::size_t colon, bool whole) {
  std::size_t end = text.size();
  if (!whole) {
    for (end = colon; end < text.size() && !is_blank(text[end]) && text[end] != '"';) ++end;
  }
  const string_view rest = text.substr(0, end);
  for (auto next = rest.find("://", colon + 1); next != string_view::npos;
       next = rest.find("://", next + 1)) {
    const auto scheme = word_before(rest, next, "+.-");
    if (is_network_scheme(scheme)) return next - scheme.size();
  }
  return end;
}

/// The VALUE of NAME=VALUE; it begins at `begin`, perhaps in quotes, and ends before `limit`.
Span parameter_value(string_view text, std::size_t begin, std::size_t limit) {
  if (begin < limit && (text[begin] == '"' || text[begin] == '\'')) {
    const auto close = text.find(text[begin], begin + 1);
    return {begin + 1, std::min(close, limit)};
  }
  std::size_t end = begin;
  while (end < limit && !is_blank(text[end]) && text[end] != '&' && text[end] != '"') ++end;
  while (end > begin && kClosers.find(text[end - 1]) != string_view::npos) --end;
  return {begin, end};
}

/// A header's value, up to the end of its line, without the name of its authentication scheme.
Span header_value(string_view text, std::size_t begin) {
  Span value{begin, std::min(text.find_first_of("\r\n", begin), text.size())};
  while (value.begin < value.end && is_blank(text[value.begin])) ++value.begin;
  for (const string_view scheme : {"basic ", "digest ", "bearer "}) {
    if (lowered(slice(text, value).substr(0, scheme.size())) == scheme) {
      value.begin += scheme.size();
      break;
    }
  }
  return value;
}

/// The stream key of an RTMP URL, the last component of its path: whoever knows it may publish.
std::optional<Span> stream_key(string_view url, std::size_t authority) {
  Span key{0, std::min(url.find('?', authority), url.size())};
  while (key.end > authority && kClosers.find(url[key.end - 1]) != string_view::npos) --key.end;
  const auto slash = url.substr(0, key.end).rfind('/');
  if (slash == string_view::npos || slash < authority || slash + 1 == key.end) return std::nullopt;
  key.begin = slash + 1;
  return key;
}

enum class Found { kUserInfo, kValue, kToken };

/// Calls `on_secret(span, kind)`, from left to right, for everything in `text` that must be secret
/// because of what stands around it. `whole`: the text is one URL.
template <typename OnSecret>
void find_secrets(string_view text, bool whole, OnSecret on_secret) {
  std::size_t in_url_until = 0;
  std::size_t done = 0;     // end of the last secret: no word reaches back into it
  std::optional<Span> key;  // stream key of the last URL, reported when the search gets there
  const auto found = [&](Span secret, Found kind) {
    if (secret.begin < secret.end) on_secret(secret, kind);
    done = std::max(done, secret.end);
  };
  const auto flush_key = [&] {
    if (key && key->begin >= done) found(*key, Found::kToken);
    key.reset();
  };
  for (std::size_t i = 0; (i = text.find_first_of(":=", i)) != string_view::npos;) {
    if (key && i >= key->begin) {
      flush_key();
      if (i < done) {
        i = done;
        continue;
      }
    }
    std::optional<Span> secret;
    Found kind = Found::kValue;
    if (text[i] == ':') {
      // FFmpeg reads rtsp:/host and rtsp:host as rtsp://host.
      const bool slashes = text.substr(i, 3) == "://";
      const bool in_url = i < in_url_until;
      const auto scheme = word_before(text, i, "+.-", done);
      if (slashes || (!in_url && is_network_scheme(scheme))) {
        in_url_until = url_end(text, i, whole);
        const string_view url = text.substr(0, in_url_until);
        const std::size_t begin = slashes ? i + 3 : i + (text.substr(i, 2) == ":/" ? 2 : 1);
        if (begin <= in_url_until) {
          secret = user_info(url, begin);
          if (lowered(scheme).starts_with("rtmp")) {
            key = stream_key(url, secret ? secret->end : begin);
          }
        }
        kind = Found::kUserInfo;
      } else if (is_credential_header(word_before(text, i, "-", done))) {
        secret = header_value(text, i + 1);
      }
    } else {
      const auto name = word_before(text, i, "_-", done);
      const std::size_t name_begin = i - name.size();
      const bool in_query =
          i < in_url_until ||
          (name_begin > 0 && string_view("?&;").find(text[name_begin - 1]) != string_view::npos);
      const std::size_t limit = i < in_url_until ? in_url_until : text.size();
      const Span value = parameter_value(text, i + 1, limit);
      if (in_query && is_stream_id(name)) {
        secret = value;
        kind = Found::kToken;
      } else if (carries_credential(name, in_query) ||
                 (in_query && SecretRegistry::instance().is_short_secret(slice(text, value)))) {
        secret = value;
      }
    }
    if (secret && secret->begin < secret->end) {
      found(*secret, kind);
      i = secret->end;
    } else {
      ++i;
    }
  }
  flush_key();
}

}  // namespace

void register_secret(string_view secret) {
  SecretRegistry::instance().add(secret);
  SecretRegistry::instance().add(percent_decoded(secret));
}

std::string redact(string_view text) {
  std::string known = SecretRegistry::instance().blank(text);
  // Masking a '#' or '/' may change how the rest of a URL reads: repeated until nothing changes.
  constexpr int kMaxPasses = 8;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    std::string out;
    std::size_t copied = 0;
    find_secrets(known, false, [&](Span secret, Found) {
      out.append(known, copied, secret.begin - copied).append(kSecretMask);
      copied = secret.end;
    });
    out.append(known, copied);
    if (out == known) break;
    known = std::move(out);
  }
  return known;
}

namespace {

/// A value that is either a token or just a name. A name like "admin" would be masked all over the
/// log, so only long values are registered.
void register_token(string_view value) {
  constexpr std::size_t kShortestToken = 12;
  if (value.size() >= kShortestToken) register_secret(value);
}

/// The values of "NAME: VALUE" lines.
void register_headers(string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const string_view line = text.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != string_view::npos) {
      const string_view name = line.substr(0, colon);
      const string_view value = slice(line, header_value(line, colon + 1));
      if (is_credential_header(name) || carries_credential(name, true)) {
        register_secret(value);
      } else if (!is_harmless_header(name)) {
        register_token(value);
      }
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The values of "NAME=VALUE; path=/" lines.
void register_cookies(string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(";\r\n"), text.size());
    const std::size_t equals = text.substr(0, end).find('=');
    if (equals != string_view::npos) {
      string_view name = text.substr(0, equals);
      while (!name.empty() && is_blank(name.front())) name.remove_prefix(1);
      while (!name.empty() && is_blank(name.back())) name.remove_suffix(1);
      const string_view value = text.substr(equals + 1, end - equals - 1);
      // A short value may be a common word, such as a feed's name.
      if (is_session_cookie(name)) {
        register_secret(value);
      } else if (!is_harmless_cookie(name)) {
        register_token(value);
      }
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void register_option_secrets(string_view name, string_view value) {
  if (value.find("://") != string_view::npos) register_url_secrets(value);
  if (name == "headers") return register_headers(value);
  if (name == "cookies") return register_cookies(value);
  // As in "live?auth=…", which FFmpeg makes a part of its URL.
  if (name == "rtmp_app") return register_url_secrets("http://host/" + std::string(value));
  if (is_stream_id(name) || name == "rtmp_playpath") return register_token(value);
  if (is_secret_option(name)) register_secret(value);
}

void register_url_secrets(string_view url) {
  find_secrets(url, true, [&](Span secret, Found kind) {
    const string_view value = slice(url, secret);
    if (kind == Found::kValue) return register_secret(value);
    const auto colon = value.find(':');
    if (kind == Found::kToken || colon == string_view::npos) {
      return register_token(value);  // a stream key or id, or a user without a password
    }
    register_secret(value.substr(colon + 1));
    const std::string pair = percent_decoded(value);
    register_secret(base64(pair));
  });
}

}  // namespace framelane
