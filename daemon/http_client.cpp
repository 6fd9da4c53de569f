#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "daemon/admin_server.hpp"
#include "daemon/socket_address.hpp"

namespace framelane {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxAnswer = 64u << 20;

std::string message_of(int error) {
  return std::error_code(error, std::system_category()).message();
}

enum class Tls {
  kNone,
  kUnchecked,  ///< whatever the certificate
  kChecked,
};

/// Where to connect and what to ask for.
struct Target {
  SocketAddress address;
  Tls tls = Tls::kNone;
  std::string host_header;
  std::string base_path;  ///< the path of the URL, which comes before the path asked for
};

Target parse_target(const std::string& listen_or_url, bool tls) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kEncrypted = "https://";
  const bool encrypted = listen_or_url.starts_with(kEncrypted);
  if (!encrypted && !listen_or_url.starts_with(kPlain)) {
    Target target{
        parse_socket_address(listen_or_url), tls ? Tls::kUnchecked : Tls::kNone, listen_or_url, {}};
    if (target.address.is_unix()) target.host_header = "localhost";
    return target;
  }
  Target target;
  target.tls = encrypted ? Tls::kChecked : Tls::kNone;
  std::string authority = listen_or_url.substr((encrypted ? kEncrypted : kPlain).size());
  if (const auto slash = authority.find('/'); slash != std::string::npos) {
    target.base_path = authority.substr(slash);
    authority.resize(slash);
    while (target.base_path.ends_with('/')) target.base_path.pop_back();
  }
  target.host_header = authority;
  const auto bracket = authority.find(']');
  const bool has_port =
      authority.find(':', bracket == std::string::npos ? 0 : bracket) != std::string::npos;
  target.address =
      parse_socket_address(has_port ? authority : authority + (encrypted ? ":443" : ":80"));
  return target;
}

struct FreeCredentials {
  void operator()(gnutls_certificate_credentials_t all) const {
    gnutls_certificate_free_credentials(all);
  }
};
struct FreeSession {
  void operator()(gnutls_session_t session) const { gnutls_deinit(session); }
};

/// A connection. Every call ends at the deadline, with an exception.
class Connection {
 public:
  Connection(const Target& target, Clock::time_point deadline) : deadline_(deadline) {
    if (target.address.is_unix()) {
      const UnixAddress address = unix_address(target.address.path);
      connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&address.storage), address.length);
      return;
    }
    connect_to(target.address);
    if (target.tls != Tls::kNone) begin_tls(target);
  }

  void send_all(std::string_view data) {
    while (!data.empty()) {
      const ssize_t sent =
          tls_ ? tls_step(gnutls_record_send(tls_.get(), data.data(), data.size()), "cannot send")
               : step(::send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL), POLLOUT,
                      "cannot send");
      if (sent > 0) data.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  std::string receive_to_end() {
    std::string answer;
    std::array<char, 16384> chunk;
    for (;;) {
      const ssize_t got = receive(chunk.data(), chunk.size());
      if (got == 0) return answer;
      if (got > 0) answer.append(chunk.data(), static_cast<std::size_t>(got));
      if (answer.size() > kMaxAnswer) throw std::runtime_error("the answer does not end");
      if (Clock::now() >= deadline_) throw_late();
    }
  }

 private:
  [[noreturn]] static void throw_late() { throw std::runtime_error("no answer in time"); }

  void connect_to(const SocketAddress& address) {
    // A wildcard address can only be listened on, so the listener is on this machine.
    SocketAddress peer = address;
    if (peer.host == "0.0.0.0") peer.host = "127.0.0.1";
    if (peer.host == "::") peer.host = "::1";
    const AddrInfoList list = resolve(peer, 0);
    for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
      try {
        connect_to(entry->ai_family, entry->ai_addr, entry->ai_addrlen);
        return;
      } catch (const std::runtime_error&) {
        if (entry->ai_next == nullptr) throw;
      }
    }
  }

  void connect_to(int family, const sockaddr* address, socklen_t length) {
    socket_ = FileDescriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket_.get() < 0) throw std::runtime_error("no socket: " + message_of(errno));
    if (::connect(socket_.get(), address, length) == 0) return;
    if (errno != EINPROGRESS) throw std::runtime_error("cannot connect: " + message_of(errno));
    wait_for(POLLOUT);
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) throw std::runtime_error("cannot connect: " + message_of(error));
  }

  void begin_tls(const Target& target) {
    // The request must not wait until the peer has acknowledged the end of the handshake.
    const int on = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    gnutls_certificate_credentials_t authorities = nullptr;
    require(gnutls_certificate_allocate_credentials(&authorities));
    authorities_.reset(authorities);
    gnutls_session_t session = nullptr;
    require(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL));
    tls_.reset(session);
    require(gnutls_set_default_priority(session));
    require(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, authorities));
    gnutls_transport_set_int(session, socket_.get());
    const std::string& host = target.address.host;
    if (host.find_first_not_of("0123456789.") != std::string::npos &&
        host.find(':') == std::string::npos) {
      require(gnutls_server_name_set(session, GNUTLS_NAME_DNS, host.data(), host.size()));
    }
    if (target.tls == Tls::kChecked) {
      gnutls_certificate_set_x509_system_trust(authorities);
      gnutls_session_set_verify_cert(session, host.c_str(), 0);
    }
    while (tls_step(gnutls_handshake(session), "no TLS connection") < 0) {
    }
  }

  ssize_t receive(char* data, std::size_t size) {
    constexpr const char* kFailure = "cannot receive";
    if (!tls_) return step(::recv(socket_.get(), data, size, 0), POLLIN, kFailure);
    const ssize_t got = gnutls_record_recv(tls_.get(), data, size);
    // The length of the answer tells whether anything is missing.
    return got == GNUTLS_E_PREMATURE_TERMINATION ? 0 : tls_step(got, kFailure);
  }

  static void require(int result) {
    if (result < 0) throw std::runtime_error(std::string("no TLS: ") + gnutls_strerror(result));
  }

  /// The result of a call of GnuTLS; -1: it must be made again, which is when the socket is ready.
  ssize_t tls_step(ssize_t result, const char* what) {
    if (result >= 0) return result;
    const int error = static_cast<int>(result);
    if (error == GNUTLS_E_AGAIN) {
      wait_for(gnutls_record_get_direction(tls_.get()) == 0 ? POLLIN : POLLOUT);
    } else if (error == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
      throw std::runtime_error("its certificate is not accepted: " + why_refused());
    } else if (gnutls_error_is_fatal(error) != 0) {
      throw std::runtime_error(std::string(what) + ": " + gnutls_strerror(error));
    }
    if (Clock::now() >= deadline_) throw_late();
    return -1;
  }

  std::string why_refused() const {
    gnutls_datum_t text{};
    const unsigned status = gnutls_session_get_verify_cert_status(tls_.get());
    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0) {
      return "it cannot be verified";
    }
    std::string why(reinterpret_cast<const char*>(text.data), text.size);
    gnutls_free(text.data);
    while (why.ends_with(' ')) why.pop_back();
    return why;
  }

  /// The result of a call on the socket; -1: it must be made again, which is when it is ready.
  ssize_t step(ssize_t result, short events, const char* what) {
    if (result >= 0 || errno == EINTR) return result;
    if (errno != EAGAIN) throw std::runtime_error(std::string(what) + ": " + message_of(errno));
    wait_for(events);
    return -1;
  }

  void wait_for(short events) {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
      if (left.count() <= 0) throw_late();
      pollfd ready{socket_.get(), events, 0};
      const int count = poll(&ready, 1, static_cast<int>(std::min<long>(left.count(), 1 << 30)));
      if (count > 0) return;
      if (count < 0 && errno != EINTR) throw std::runtime_error("poll: " + message_of(errno));
    }
  }

  const Clock::time_point deadline_;
  FileDescriptor socket_;
  std::unique_ptr<gnutls_certificate_credentials_st, FreeCredentials> authorities_;
  std::unique_ptr<gnutls_session_int, FreeSession> tls_;  // null: none
};

std::optional<std::size_t> content_length(std::string_view head) {
  constexpr std::string_view kName = "\r\ncontent-length:";
  const auto same = [](char a, char b) { return strncasecmp(&a, &b, 1) == 0; };
  const auto at = std::search(head.begin(), head.end(), kName.begin(), kName.end(), same);
  if (at == head.end()) return std::nullopt;
  const char* begin = head.data() + (at - head.begin()) + kName.size();
  const char* end = head.data() + head.size();
  while (begin != end && *begin == ' ') ++begin;
  std::size_t length = 0;
  if (std::from_chars(begin, end, length).ec != std::errc{}) return std::nullopt;
  return length;
}

FetchResult parse_answer(const std::string& answer) {
  constexpr std::size_t kStatusAt = 9;  // after "HTTP/1.1 "
  FetchResult result;
  const auto end_of_head = answer.find("\r\n\r\n");
  const char* digits = answer.data() + kStatusAt;
  if (!answer.starts_with("HTTP/1.") || end_of_head == std::string::npos ||
      end_of_head < kStatusAt + 3 ||
      std::from_chars(digits, digits + 3, result.status).ptr != digits + 3) {
    throw std::runtime_error("the answer is not HTTP");
  }
  result.body = answer.substr(end_of_head + 4);
  const auto length = content_length(std::string_view(answer).substr(0, end_of_head));
  if (length && result.body.size() < *length) throw std::runtime_error("the answer was cut off");
  return result;
}

}  // namespace

FetchResult http_get(const std::string& listen_or_url, const std::string& path,
                     std::chrono::milliseconds timeout, bool tls,
                     const std::vector<std::string>& headers) {
  try {
    const Target target = parse_target(listen_or_url, tls);
    Connection connection(target, Clock::now() + timeout);
    // With HTTP/1.0 the answer is not chunked and ends with the connection.
    std::string request = "GET " + target.base_path + path +
                          " HTTP/1.0\r\nHost: " + target.host_header + "\r\nConnection: close\r\n";
    for (const std::string& header : headers) request += header + "\r\n";
    connection.send_all(request + "\r\n");
    return parse_answer(connection.receive_to_end());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(listen_or_url + ": " + error.what());
  }
}

}  // namespace framelane
