#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "pipeline/base/file_descriptor.hpp"

namespace framelane {

/// Where to listen or connect: HOST:PORT, [V6]:PORT or unix:PATH.
struct SocketAddress {
  std::string host;  ///< without brackets; empty for a Unix socket
  std::string port;
  std::string path;  ///< of a Unix socket

  bool is_unix() const { return !path.empty(); }
};
/// Throws std::runtime_error with one sentence.
SocketAddress parse_socket_address(const std::string& text);

struct AddrInfoDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddrInfoList = std::unique_ptr<addrinfo, AddrInfoDeleter>;
/// The stream addresses of a host; `flags` are those of getaddrinfo(3). Blocks if DNS must be asked
/// for a name. Throws std::runtime_error.
AddrInfoList resolve(const SocketAddress& address, int flags);

struct UnixAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};
/// Throws std::runtime_error if the path is too long for a socket.
UnixAddress unix_address(const std::string& path);

/// "127.0.0.1:80" or "[::1]:80"; empty if the address is of another family.
std::string to_string(const sockaddr* address, socklen_t length);
/// The same without the port.
std::string host_of(const sockaddr* address, socklen_t length);

}  // namespace framelane
