#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace framelane {

class AdminAccess;

struct HttpRequest {
  std::string method;
  std::string path;  ///< without the query
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::string peer{};  ///< the client's IP address; empty: it came through a Unix socket
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  /// Besides those that all have. One of these names, as it is written there, replaces that one.
  std::multimap<std::string, std::string> headers = {};
};

/// {"error":{"code","message","key"}} with this status; "key" is null if `key` is empty.
HttpResponse error_response(int status, const std::string& code, const std::string& message,
                            const std::string& key = {});

/// The admin listener: one thread that calls one handler, with the limits below. The handler
/// runs on that thread and must not block for long, except for requests that take long: it answers
/// these on threads of their own. It also answers HEAD; the body is then not sent.
///
/// A new client never waits for slow ones. At a limit on connections, the connection that has gone
/// longest without completing a request is closed to make room.
///
/// With TLS a handshake that is slow or that does not end is limited as a silent client is. Each
/// one has the certificate that is in force when it begins.
///
/// The Host header is checked (HostCheck), unless there are tokens or TLS: a page that made its own
/// name resolve to this address neither knows a token nor has a certificate for that name.
class AdminServer {
 public:
  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::size_t kMaxConnectionsPerAddress = 16;
  static constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
  static constexpr std::size_t kMaxBodyBytes = 64 * 1024;
  static constexpr std::chrono::seconds kIdleTimeout{5};

  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  /// True if a request may take seconds to answer. `body` and `query` are not looked at.
  using TakesLong = std::function<bool(const HttpRequest&)>;

  /// `listen`: HOST:PORT, [V6]:PORT (port 0: any free one) or unix:PATH (the socket gets mode 0660
  /// and replaces one on which nobody listens). Throws std::runtime_error with one sentence if it
  /// cannot listen there. A client that is silent for longer than `idle_timeout` is disconnected;
  /// at least 1 s, because libmicrohttpd takes 0 for no limit. `access` tells the certificate; if
  /// it has one now, the listener speaks TLS until its end. Null: no TLS and no tokens.
  AdminServer(const std::string& listen, Handler handler, TakesLong takes_long = {},
              std::chrono::seconds idle_timeout = kIdleTimeout,
              std::shared_ptr<const AdminAccess> access = {});
  /// Closes all connections, after waiting for running handlers.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// The address in use, with the real port.
  const std::string& address() const;
  bool uses_tls() const;
  /// Only this machine can connect.
  bool local_only() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// GETs `path` from a listener, for `healthcheck` and the watchdog. The listener is given as to
/// AdminServer or as an http:// or https:// URL. Blocks for up to `timeout`, and longer if DNS must
/// be asked for a name. Throws std::runtime_error if there is no answer in time.
///
/// The certificate of an https:// URL must be one that this machine's authorities have issued for
/// its name. With `tls` the listener is one's own, on this machine. Its certificate is not checked:
/// it may be for another name, or have been replaced since, and no secret is sent.
struct FetchResult {
  int status = 0;
  std::string body;
};
FetchResult http_get(const std::string& listen_or_url, const std::string& path,
                     std::chrono::milliseconds timeout, bool tls = false);

}  // namespace framelane
