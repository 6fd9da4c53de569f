#include <fcntl.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
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

/// Where to connect and what to ask for.
struct Target {
  SocketAddress address;
  std::string host_header;
  std::string base_path;  ///< the path of the URL, which comes before the path asked for
};

Target parse_target(const std::string& listen_or_url) {
  constexpr std::string_view kScheme = "http://";
  if (!listen_or_url.starts_with(kScheme)) {
    Target target{parse_socket_address(listen_or_url), listen_or_url, {}};
    if (target.address.is_unix()) target.host_header = "localhost";
    return target;
  }
  Target target;
  std::string authority = listen_or_url.substr(kScheme.size());
  if (const auto slash = authority.find('/'); slash != std::string::npos) {
    target.base_path = authority.substr(slash);
    authority.resize(slash);
    while (target.base_path.ends_with('/')) target.base_path.pop_back();
  }
  target.host_header = authority;
  const auto bracket = authority.find(']');
  const bool has_port =
      authority.find(':', bracket == std::string::npos ? 0 : bracket) != std::string::npos;
  target.address = parse_socket_address(has_port ? authority : authority + ":80");
  return target;
}

/// A connection. Every call ends at the deadline, with an exception.
class Connection {
 public:
  Connection(const Target& target, Clock::time_point deadline) : deadline_(deadline) {
    if (target.address.is_unix()) {
      const UnixAddress address = unix_address(target.address.path);
      connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&address.storage), address.length);
      return;
    }
    // A wildcard address can only be listened on, so the listener is on this machine.
    SocketAddress peer = target.address;
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

  void send_all(std::string_view data) {
    while (!data.empty()) {
      const ssize_t sent = ::send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        data.remove_prefix(static_cast<std::size_t>(sent));
      } else {
        wait_after_error(POLLOUT, "cannot send");
      }
    }
  }

  std::string receive_to_end() {
    std::string answer;
    std::array<char, 16384> chunk;
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
      if (got == 0) return answer;
      if (got < 0) {
        wait_after_error(POLLIN, "cannot receive");
        continue;
      }
      answer.append(chunk.data(), static_cast<std::size_t>(got));
      if (answer.size() > kMaxAnswer) throw std::runtime_error("the answer does not end");
      if (Clock::now() >= deadline_) throw_late();
    }
  }

 private:
  [[noreturn]] static void throw_late() { throw std::runtime_error("no answer in time"); }

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

  void wait_after_error(short events, const char* what) {
    if (errno == EINTR) return;
    if (errno != EAGAIN) throw std::runtime_error(std::string(what) + ": " + message_of(errno));
    wait_for(events);
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
                     std::chrono::milliseconds timeout) {
  try {
    const Target target = parse_target(listen_or_url);
    Connection connection(target, Clock::now() + timeout);
    // With HTTP/1.0 the answer is not chunked and ends with the connection.
    connection.send_all("GET " + target.base_path + path + " HTTP/1.0\r\nHost: " +
                        target.host_header + "\r\nConnection: close\r\n\r\n");
    return parse_answer(connection.receive_to_end());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(listen_or_url + ": " + error.what());
  }
}

}  // namespace framelane
