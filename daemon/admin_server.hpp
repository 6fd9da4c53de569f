#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/http_message.hpp"

namespace framelane {

class AdminAccess;

/// How an AdminServer answers.
struct AdminServerOptions {
  /// True if a request may take seconds to answer. `body` and `query` are not looked at. Null: none
  /// does.
  std::function<bool(const HttpRequest&)> takes_long{};
  /// An answer that says why the request gets no other; nothing if it does. It is asked before
  /// anything is done for the request, and again before each piece of a stream, which ends when it
  /// is refused. It must not block. Null: none is refused.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> refuse{};
  /// A client that is silent for longer is disconnected; at least 1 s, because libmicrohttpd takes
  /// 0 for no limit.
  std::chrono::seconds idle_timeout{5};
  /// Tells the certificate; if it has one when the listener begins, that speaks TLS until its end.
  /// Null: no TLS and no tokens.
  std::shared_ptr<const AdminAccess> access{};
};

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
  /// Of requests that take long: one more is answered with 503. Those that change something have
  /// some more of their own.
  static constexpr std::size_t kMaxAnswering = 32;
  static constexpr std::size_t kReservedAnswering = 4;
  /// Of answers that clients have not read yet. One that takes long and has more than 64 KiB is
  /// refused with 503 beyond this; others beyond this and kReservedBytes.
  static constexpr std::size_t kMaxUnsentBytes = 128u << 20;
  static constexpr std::size_t kReservedBytes = 32u << 20;
  static constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
  static constexpr std::size_t kMaxBodyBytes = 64 * 1024;

  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// `listen`: HOST:PORT, [V6]:PORT (port 0: any free one) or unix:PATH (the socket gets mode 0660
  /// and replaces one on which nobody listens). Throws std::runtime_error with one sentence if it
  /// cannot listen there.
  AdminServer(const std::string& listen, Handler handler, AdminServerOptions options = {});
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

}  // namespace framelane
