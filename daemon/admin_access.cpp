#include "daemon/admin_access.hpp"

#include <gnutls/gnutls.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "config/problems.hpp"
#include "config/tls_certificate.hpp"
#include "pipeline/base/credential_names.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/utc_time.hpp"

namespace framelane {
namespace {

/// The password of Basic authentication: base64 of USER:PASSWORD. Empty if it is no such text.
std::string basic_password(std::string_view encoded) {
  const gnutls_datum_t data{reinterpret_cast<unsigned char*>(const_cast<char*>(encoded.data())),
                            static_cast<unsigned>(encoded.size())};
  gnutls_datum_t decoded{};
  if (gnutls_base64_decode2(&data, &decoded) < 0) return {};
  const std::string pair(reinterpret_cast<const char*>(decoded.data), decoded.size);
  gnutls_free(decoded.data);
  const auto colon = pair.find(':');
  return colon == std::string::npos ? std::string() : pair.substr(colon + 1);
}

/// The token of an Authorization header; empty if it has none.
std::string token_of(std::string_view header) {
  const auto space = header.find(' ');
  if (space == std::string_view::npos) return {};
  const std::string scheme = lowered(header.substr(0, space));
  std::string_view rest = header.substr(space);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (scheme == "bearer") return std::string(rest);
  if (scheme == "basic") return basic_password(rest);
  return {};
}

void warn_of_dates(const TlsCertificate& certificate) {
  const auto now = std::chrono::system_clock::now();
  if (now > certificate.ends()) {
    log::warn(
        "admin.tls.certificate: it has expired ({}), and clients will refuse it; put a new one "
        "there, and reload the configuration",
        utc_time(certificate.ends()));
  } else if (now < certificate.begins()) {
    log::warn(
        "admin.tls.certificate: it is valid only from {} on, and clients refuse it until then; see "
        "whether this machine's clock is right",
        utc_time(certificate.begins()));
  }
}

}  // namespace

AdminAccess::AdminAccess(const AdminConfig& config) { replace(config); }

void AdminAccess::replace(const AdminConfig& config) {
  if (config.certificate) warn_of_dates(*config.certificate);
  const std::lock_guard lock(mutex_);
  tokens_ = config.tokens;
  certificate_ = config.certificate;
}

bool AdminAccess::has_tokens() const {
  const std::lock_guard lock(mutex_);
  return !tokens_.empty();
}

std::shared_ptr<const TlsCertificate> AdminAccess::certificate() const {
  const std::lock_guard lock(mutex_);
  return certificate_;
}

bool AdminAccess::has(const std::vector<AdminToken>& tokens) const {
  const std::lock_guard lock(mutex_);
  return tokens_ == tokens;
}

bool AdminAccess::has(const std::shared_ptr<const TlsCertificate>& certificate) const {
  const std::lock_guard lock(mutex_);
  if (certificate == nullptr || certificate_ == nullptr) return certificate == certificate_;
  return certificate->same_as(*certificate_);
}

std::optional<AdminRole> AdminAccess::role_of(const std::string& token) const {
  const AdminToken::Hash hash = AdminToken::hash_of(token);
  std::optional<AdminRole> role;
  for (const AdminToken& known : tokens_) {  // all of them, so that the time does not tell which
    if (known.is(hash)) role = std::max(role.value_or(known.role), known.role);
  }
  return role;
}

std::optional<HttpResponse> AdminAccess::refuse(const HttpRequest& request, AdminRole needed) {
  const std::lock_guard lock(mutex_);
  if (tokens_.empty()) return std::nullopt;
  const auto header = request.headers.find("authorization");
  const std::string token = header == request.headers.end() ? "" : token_of(header->second);
  if (!token.empty()) {
    const std::optional<AdminRole> role = role_of(token);
    if (role && *role >= needed) return std::nullopt;
    if (role) {
      log_refusal(request, "with a token that may only read",
                  "to control it needs one of admin.tokens.control");
      return error_response(403, "control_token_needed",
                            "this token may only read; use one of admin.tokens.control");
    }
  }
  if (token.empty()) {
    log_refusal(request, "without a token", "it needs one of admin.tokens");
  } else {
    log_refusal(request, "with a wrong token",
                "compare it with the files of admin.tokens, and reload the configuration where one "
                "has changed");
  }
  HttpResponse response =
      token.empty()
          ? error_response(401, "token_needed",
                           "send a token of admin.tokens, as Authorization: Bearer TOKEN or as the "
                           "password of Basic authentication")
          : error_response(401, "wrong_token",
                           "this token is in none of the files of admin.tokens; where a file has "
                           "changed, reload the configuration");
  response.headers.emplace("WWW-Authenticate", R"(Basic realm="framelane", charset="UTF-8")");
  response.headers.emplace("WWW-Authenticate", R"(Bearer realm="framelane")");
  return response;
}

void AdminAccess::log_refusal(const HttpRequest& request, const std::string& why,
                              const std::string& remedy) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_line_) {
    ++unlogged_;
    return;
  }
  next_line_ = now + kLogEvery;
  const std::uint64_t others = std::exchange(unlogged_, 0);
  log::warn("admin listener: refused {} {} of {} {}{}; {}", request.method, in_quotes(request.path),
            request.peer.empty() ? "a program on this machine" : request.peer, why,
            others == 0 ? "" : fmt::format(" ({} more were refused before it)", others), remedy);
}

}  // namespace framelane
