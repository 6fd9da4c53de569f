#include "pipeline/source/connection_check.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <utility>

namespace framelane {
namespace {

thread_local const ConnectionCheck::MayReach* t_may_reach = nullptr;

/// True, with errno set, if a check of this thread refuses the address.
bool is_refused(int socket, const sockaddr* address, socklen_t size) {
  if (t_may_reach == nullptr || address == nullptr) return false;
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return false;
  if ((*t_may_reach)(*address, size, socket)) return false;
  errno = EACCES;
  return true;
}

}  // namespace

ConnectionCheck::ConnectionCheck(MayReach may_reach)
    : may_reach_(std::move(may_reach)), outer_(std::exchange(t_may_reach, &may_reach_)) {}

ConnectionCheck::~ConnectionCheck() { t_may_reach = outer_; }

}  // namespace framelane

// These stand in front of the C library's.

extern "C" int connect(int socket, const sockaddr* address, socklen_t size) {
  if (framelane::is_refused(socket, address, size)) return -1;
  static const auto next = reinterpret_cast<decltype(&connect)>(dlsym(RTLD_NEXT, "connect"));
  return next(socket, address, size);
}

extern "C" ssize_t sendto(int socket, const void* data, size_t bytes, int flags,
                          const sockaddr* address, socklen_t size) {
  if (framelane::is_refused(socket, address, size)) return -1;
  static const auto next = reinterpret_cast<decltype(&sendto)>(dlsym(RTLD_NEXT, "sendto"));
  return next(socket, data, bytes, flags, address, size);
}
