#include "pipeline/base/credential_names.hpp"

#include <algorithm>
#include <array>

namespace framelane {

using std::string_view;

std::string lowered(string_view text) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

bool carries_credential(string_view name, bool in_url) {
  static constexpr std::array<string_view, 18> kEndings{
      "password",   "passwd",  "passphrase", "secret",        "token",         "signature",
      "credential", "apikey",  "accesskey",  "secretkey",     "privatekey",    "streamkey",
      "authkey",    "signkey", "sharedkey",  "encryptionkey", "decryptionkey", "decryptionkeys"};
  static constexpr std::array<string_view, 5> kEndingsInUrls{"pas", "pass", "psw", "pwd",
                                                             "passwort"};
  static constexpr std::array<string_view, 4> kLastWordsInUrls{"auth", "key", "pin", "sig"};
  static constexpr std::array<string_view, 12> kInUrls{"accesskeyid",
                                                       "authorization",
                                                       "awsaccesskeyid",
                                                       "hdnea",
                                                       "hdnts",
                                                       "hdntl",
                                                       "hmac",
                                                       "jwt",
                                                       "md5",
                                                       "psk",
                                                       "pw",
                                                       "sign"};
  const string_view last_word = name.substr(name.find_last_of("_-") + 1);
  std::string plain = lowered(name);
  std::erase_if(plain, [](char c) { return c == '_' || c == '-'; });
  const auto ends = [&](string_view ending) { return plain.ends_with(ending); };
  const auto is_one = [](const auto& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  if (std::any_of(kEndings.begin(), kEndings.end(), ends)) return true;
  if (!in_url) return false;
  return std::any_of(kEndingsInUrls.begin(), kEndingsInUrls.end(), ends) ||
         is_one(kLastWordsInUrls, lowered(last_word)) || is_one(kInUrls, plain);
}

bool is_stream_id(string_view name) {
  const std::string plain = lowered(name);
  return plain == "streamid" || plain == "srt_streamid";
}

bool is_secret_option(string_view name) {
  static constexpr std::array<string_view, 10> kSecrets{
      "activation_bytes", "audible_iv", "audible_key",    "authorization",  "hls_enc_key", "key",
      "post_data",        "rtmp_conn",  "srtp_in_params", "srtp_out_params"};
  // The rules for URLs are too wide here: libx264 has an option "pass".
  return carries_credential(name, false) ||
         std::find(kSecrets.begin(), kSecrets.end(), name) != kSecrets.end();
}

bool is_credential_header(string_view name) {
  static constexpr std::array<string_view, 6> kHeaders{
      "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token"};
  return std::find(kHeaders.begin(), kHeaders.end(), lowered(name)) != kHeaders.end();
}

bool is_harmless_header(string_view name) {
  static constexpr std::array<string_view, 20> kHeaders{"accept",
                                                        "accept-encoding",
                                                        "accept-language",
                                                        "cache-control",
                                                        "connection",
                                                        "content-length",
                                                        "content-type",
                                                        "date",
                                                        "forwarded",
                                                        "from",
                                                        "host",
                                                        "icy-metadata",
                                                        "origin",
                                                        "pragma",
                                                        "range",
                                                        "referer",
                                                        "user-agent",
                                                        "via",
                                                        "x-forwarded-for",
                                                        "x-real-ip"};
  return std::find(kHeaders.begin(), kHeaders.end(), lowered(name)) != kHeaders.end();
}

bool is_session_cookie(string_view name) {
  const std::string lower = lowered(name);
  return carries_credential(name, false) || lower.ends_with("sid") ||
         lower.find("sess") != std::string::npos || lower.find("auth") != std::string::npos;
}

bool is_harmless_cookie(string_view name) {
  // The attributes of Set-Cookie (RFC 6265, 4.1.1), and what says how a page is shown.
  static constexpr std::array<string_view, 14> kCookies{
      "domain", "expires",  "httponly", "lang",   "language", "locale",   "max-age",
      "path",   "priority", "samesite", "secure", "theme",    "timezone", "tz"};
  return std::find(kCookies.begin(), kCookies.end(), lowered(name)) != kCookies.end();
}

}  // namespace framelane
