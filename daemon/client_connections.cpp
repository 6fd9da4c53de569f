#include "daemon/client_connections.hpp"

#include <algorithm>
#include <utility>

#include "daemon/socket_address.hpp"

namespace framelane {
namespace {

std::string peer_of(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  auto* address = reinterpret_cast<sockaddr*>(&peer);
  return getpeername(fd, address, &length) == 0 ? host_of(address, length) : std::string();
}

}  // namespace

ClientConnections::Entry ClientConnections::add(int fd) {
  Connection added{.fd = fd, .host = peer_of(fd)};
  if (!added.host.empty()) {
    make_room(most_of_address_, [&](const Connection& other) { return other.host == added.host; });
  }
  make_room(most_, [](const Connection&) { return true; });
  all_.push_back(std::move(added));
  return std::prev(all_.end());
}

void ClientConnections::make_room(std::size_t most,
                                  const std::function<bool(const Connection&)>& counts) {
  const auto open = [&](const Connection& one) {
    return !one.closing && !one.streams && counts(one);
  };
  if (std::ranges::count_if(all_, open) < static_cast<std::ptrdiff_t>(most)) return;
  const auto oldest = std::ranges::find_if(all_, open);
  oldest->closing = true;
  ::shutdown(oldest->fd, SHUT_RDWR);
}

}  // namespace framelane
