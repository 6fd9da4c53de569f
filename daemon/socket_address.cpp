#include "daemon/socket_address.hpp"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace framelane {

SocketAddress parse_socket_address(const std::string& text) {
  SocketAddress address;
  if (text.starts_with("unix:")) {
    address.path = text.substr(5);
    if (address.path.empty())
      throw std::runtime_error("'" + text + "' names no socket; use unix:PATH");
    return address;
  }
  const auto colon = text.rfind(':');
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    address.port = text.substr(colon + 1);
  }
  const bool bracketed =
      address.host.size() > 2 && address.host.starts_with('[') && address.host.ends_with(']');
  if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  const bool port_is_number = !address.port.empty() && address.port.size() <= 5 &&
                              std::all_of(address.port.begin(), address.port.end(),
                                          [](char c) { return c >= '0' && c <= '9'; }) &&
                              std::stoi(address.port) <= 65535;
  const bool bare_v6 = !bracketed && address.host.find(':') != std::string::npos;
  if (address.host.empty() || bare_v6 || !port_is_number) {
    throw std::runtime_error("'" + text +
                             "' is not an address; use HOST:PORT, [V6]:PORT or unix:PATH");
  }
  return address;
}

AddrInfoList resolve(const SocketAddress& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &list)) {
    throw std::runtime_error("cannot resolve '" + address.host + "': " + gai_strerror(error));
  }
  return AddrInfoList(list);
}

UnixAddress unix_address(const std::string& path) {
  sockaddr_un name{};
  if (path.size() >= sizeof name.sun_path) {
    throw std::runtime_error("the socket path '" + path + "' is longer than " +
                             std::to_string(sizeof name.sun_path - 1) + " bytes");
  }
  name.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), name.sun_path);
  UnixAddress address;
  address.length = sizeof name;
  std::memcpy(&address.storage, &name, sizeof name);
  return address;
}

std::string host_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return {};
  if (getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  return host.data();
}

std::string to_string(const sockaddr* address, socklen_t length) {
  const std::string host = host_of(address, length);
  std::array<char, NI_MAXSERV> port{};
  if (host.empty() ||
      getnameinfo(address, length, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) != 0) {
    return {};
  }
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + port.data();
}

}  // namespace framelane
