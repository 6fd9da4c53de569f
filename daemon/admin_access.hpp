#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "config/process_config.hpp"
#include "daemon/admin_server.hpp"

namespace framelane {

/// Who may ask what of the admin listener, and the certificate with which it answers. Both may
/// change while it runs. Any thread.
class AdminAccess {
 public:
  /// A line about refused requests comes at most this often, with their number.
  static constexpr std::chrono::seconds kLogEvery{10};

  explicit AdminAccess(const AdminConfig& config);

  /// From the next request, and the next TLS handshake, on. Open connections stay. Warns of a
  /// certificate that is not valid now.
  void replace(const AdminConfig& config);

  /// Without tokens, whoever can connect may ask for everything.
  bool has_tokens() const;
  /// Null: no TLS.
  std::shared_ptr<const TlsCertificate> certificate() const;
  /// True if these tokens are in force.
  bool has(const std::vector<AdminToken>& tokens) const;
  /// True if this certificate, or one of the same content, is; null: if there is no TLS.
  bool has(const std::shared_ptr<const TlsCertificate>& certificate) const;

  /// Why the request is not answered, which is logged; nothing if its token may `needed`, or if
  /// there are no tokens. A token comes as "Authorization: Bearer TOKEN", or as the password of
  /// Basic authentication with any user name.
  std::optional<HttpResponse> refuse(const HttpRequest& request, AdminRole needed);

 private:
  /// What the best of the tokens that match may do; nothing if none matches.
  std::optional<AdminRole> role_of(const std::string& token) const;
  void log_refusal(const HttpRequest& request, const std::string& why, const std::string& remedy);

  mutable std::mutex mutex_;  // guards all
  std::vector<AdminToken> tokens_;
  std::shared_ptr<const TlsCertificate> certificate_;
  std::chrono::steady_clock::time_point next_line_;
  std::uint64_t unlogged_ = 0;
};

}  // namespace framelane
