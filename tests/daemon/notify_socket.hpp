#pragma once

#include <stdlib.h>
#include <sys/socket.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/socket_address.hpp"
#include "tests/pipeline/source/media_files.hpp"

namespace framelane::testing {

/// Stands for systemd: what sd_notify(3) says while this exists comes here.
class NotifySocket {
 public:
  NotifySocket() {
    const std::string path = folder_ / "notify";
    const UnixAddress address = unix_address(path);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address.storage),
               address.length) != 0) {
      throw std::runtime_error("cannot bind " + path);
    }
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~NotifySocket() { ::unsetenv("NOTIFY_SOCKET"); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  /// What was said since this was asked last.
  std::vector<std::string> heard() const {
    std::vector<std::string> all;
    std::array<char, 256> message;
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), message.data(), message.size(), 0);
      if (got < 0) return all;
      all.emplace_back(message.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  const TempFolder folder_;
  const FileDescriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
};

}  // namespace framelane::testing
