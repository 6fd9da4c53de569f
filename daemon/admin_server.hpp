#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/http_message.hpp"

namespace framelane {

class AdminAccess;

/// The admin listener: one thread that calls one handler, with the limits below. The handler
/// runs on that thread and must not block for long, except for requests that take long: it answers
/// these on threads of their own. It also answers HEAD; the body is then not sent.
///
/// A new client never waits for slow ones. At a limit on connections, the connection that has gone
/// longest without completing a request is closed to make room. Streams (HttpResponse::stream) have
/// a limit of their own: one more is answered with 503. A stream whose client does not read is
/// closed after the idle timeout, or its own.
///
/// With TLS a handshake that is slow or that does not end is limited as a silent client is. Each
/// one has the certificate that is in force when it begins.
///
/// The Host header is checked (HostCheck), unless there are tokens or TLS: a page that made its own
/// name resolve to this address neither knows a token nor has a certificate for that name.
class AdminServer {
 public:
  static constexpr std::size_t kMaxConnections = 256;
  static constexpr std::size_t kMaxConnectionsPerAddress = 128;
  static constexpr std::size_t kMaxStreams = 64;
  /// Of requests that take long: one more is answered with 503.
  static constexpr std::size_t kMaxAnswering = 16;
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
  /// Closes all connections, after waiting for running handlers, kLastAnswers at most. Those that
  /// still run then are stuck: their threads are counted as abandoned, and the listener stays.
  ~AdminServer();
  static constexpr std::chrono::milliseconds kLastAnswers{500};
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
///
/// `headers`: further lines of the request, without their ends.
struct FetchResult {
  int status = 0;
  std::string body;
};
FetchResult http_get(const std::string& listen_or_url, const std::string& path,
                     std::chrono::milliseconds timeout, bool tls = false,
                     const std::vector<std::string>& headers = {});

}  // namespace framelane
