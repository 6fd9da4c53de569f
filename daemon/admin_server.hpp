#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace framelane {

struct HttpRequest {
  std::string method;
  std::string path;  ///< without the query
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::map<std::string, std::string> headers = {};  ///< besides Content-Type
};

/// {"error":{"code","message","key"}} with this status; "key" is null if `key` is empty.
HttpResponse error_response(int status, const std::string& code, const std::string& message,
                            const std::string& key = {});

/// The admin listener: one epoll thread that calls one handler, with the limits below. The handler
/// runs on that thread and must not block for long, except for requests that take long: it answers
/// these on threads of their own. It also answers HEAD; the body is then not sent.
///
/// A new client never waits for slow ones. At a limit on connections, the connection that has gone
/// longest without completing a request is closed to make room.
///
/// The Host header must be an IP address, localhost or the name listened on. If other machines can
/// connect, it may also be a name without dots or this machine's name. This stops "DNS rebinding":
/// a web page whose own domain resolves to this address cannot read from the listener.
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
  /// at least 1 s, because libmicrohttpd takes 0 for no limit.
  AdminServer(const std::string& listen, Handler handler, TakesLong takes_long = {},
              std::chrono::seconds idle_timeout = kIdleTimeout);
  /// Closes all connections, after waiting for running handlers.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// The address in use, with the real port.
  const std::string& address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// GETs `path` from a listener, for `healthcheck` and the watchdog. The listener is given as to
/// AdminServer or as an http:// URL. Blocks for up to `timeout`, and longer if DNS must be asked
/// for a name. Throws std::runtime_error if there is no answer in time.
struct FetchResult {
  int status = 0;
  std::string body;
};
FetchResult http_get(const std::string& listen_or_url, const std::string& path,
                     std::chrono::milliseconds timeout);

}  // namespace framelane
