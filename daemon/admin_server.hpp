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

/// {"error":{"code","message","key"}} with that status; key is null when empty.
HttpResponse error_response(int status, const std::string& code, const std::string& message,
                            const std::string& key = {});

/// The admin listener: one epoll thread in front of one handler, with limits on connections, per
/// address, header, body and time. The handler runs on that thread and must not block for long; a
/// HEAD request is one whose body is not sent.
///
/// A new client never waits for slow ones: at a limit on connections, the one that has gone longest
/// without completing a request is closed to make room.
///
/// The Host header must be an IP address or localhost, or, unless only this machine can connect, a
/// name without dots, this machine's name or the name listened on: a page that has its own domain
/// resolve to this address ("DNS rebinding") gets nothing.
class AdminServer {
 public:
  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::size_t kMaxConnectionsPerAddress = 16;
  static constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
  static constexpr std::size_t kMaxBodyBytes = 64 * 1024;
  static constexpr std::chrono::seconds kIdleTimeout{5};

  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// `listen`: HOST:PORT, [V6]:PORT (port 0: any) or unix:PATH (mode 0660, a stale socket is
  /// replaced). Throws std::runtime_error with one sentence when the address cannot be had.
  AdminServer(const std::string& listen, Handler handler);
  /// Closes all connections and waits for the handler.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  /// The address in use: the port is the real one.
  const std::string& address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// GETs `path` from such a listener, given as to AdminServer or as an http:// URL; used by
/// `healthcheck` and the watchdog. Throws std::runtime_error when there is no answer in time; a
/// name that has to be asked from DNS may take longer.
struct FetchResult {
  int status = 0;
  std::string body;
};
FetchResult http_get(const std::string& listen_or_url, const std::string& path,
                     std::chrono::milliseconds timeout);

}  // namespace framelane
