#include "daemon/listen_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "pipeline/base/loopback.hpp"

namespace framelane {
namespace {

constexpr int kBacklog = 128;

[[noreturn]] void throw_cannot_listen(const std::string& text, const std::string& why) {
  throw std::runtime_error("cannot listen on " + text + ": " + why +
                           "; choose another address with admin.listen");
}

std::string text_of(int error) { return std::error_code(error, std::system_category()).message(); }

bool is_local(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return is_loopback(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  }
  return address->sa_family == AF_INET6 &&
         is_loopback(reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

FileDescriptor open_socket(int family) {
  FileDescriptor fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) throw std::runtime_error(text_of(errno));
  return fd;
}

void remove_stale_socket(const std::string& path, const UnixAddress& address) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) throw std::runtime_error("it exists and is not a socket");
  const FileDescriptor probe = open_socket(AF_UNIX);
  const int result =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length);
  if (result == 0 || errno != ECONNREFUSED) throw std::runtime_error(text_of(EADDRINUSE));
  ::unlink(path.c_str());
}

ListenSocket listen_unix(const std::string& path) {
  const UnixAddress address = unix_address(path);
  remove_stale_socket(path, address);
  FileDescriptor fd = open_socket(AF_UNIX);
  // Nobody can connect before listen(), so chmod() is in time.
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 ||
      ::chmod(path.c_str(), 0660) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    throw std::runtime_error(text_of(errno));
  }
  return {std::move(fd), "unix:" + path, true};
}

ListenSocket listen_tcp(const SocketAddress& address) {
  const AddrInfoList list = resolve(address, AI_PASSIVE);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    FileDescriptor fd = open_socket(entry->ai_family);
    const int on = 1;
    const int off = 0;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (entry->ai_family == AF_INET6) {
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);  // [::] is IPv4 too
    }
    if (::bind(fd.get(), entry->ai_addr, entry->ai_addrlen) != 0 ||
        ::listen(fd.get(), kBacklog) != 0) {
      error = errno;
      continue;
    }
    sockaddr_storage bound{};
    socklen_t length = sizeof bound;
    auto* bound_address = reinterpret_cast<sockaddr*>(&bound);
    getsockname(fd.get(), bound_address, &length);
    return {std::move(fd), to_string(bound_address, length), is_local(bound_address)};
  }
  throw std::runtime_error(text_of(error));
}

}  // namespace

ListenSocket listen_on(const SocketAddress& address, const std::string& text) {
  try {
    return address.is_unix() ? listen_unix(address.path) : listen_tcp(address);
  } catch (const std::runtime_error& error) {
    throw_cannot_listen(text, error.what());
  }
}

}  // namespace framelane
