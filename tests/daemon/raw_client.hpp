#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include "daemon/socket_address.hpp"

namespace framelane::testing {

/// A client that sends exactly the bytes it is told to.
class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    const SocketAddress parsed = parse_socket_address(address);
    const AddrInfoList list = resolve(parsed, AI_NUMERICHOST);
    fd_ = FileDescriptor(::socket(list->ai_family, SOCK_STREAM, 0));
    if (::connect(fd_.get(), list->ai_addr, list->ai_addrlen) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }
  void send(std::string_view data) { ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL); }
  /// Reads until `end` has come, the peer closes, or nothing has come for `patience`.
  std::string receive_until(std::string_view end,
                            std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    std::string answer;
    pollfd ready{fd_.get(), POLLIN, 0};
    while (!answer.ends_with(end) && poll(&ready, 1, static_cast<int>(patience.count())) == 1) {
      std::array<char, 4096> chunk;
      const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
      if (got <= 0) {
        closed_ = true;
        break;
      }
      answer.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return answer;
  }
  std::string ask(std::string_view request) {
    send(request);
    return receive_until("<never>");
  }
  /// Whether receive_until has seen the end of the connection.
  bool closed() const { return closed_; }

 private:
  FileDescriptor fd_;
  bool closed_ = false;
};

}  // namespace framelane::testing
