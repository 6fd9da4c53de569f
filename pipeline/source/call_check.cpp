#include "pipeline/source/call_check.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <utility>

namespace framelane {
namespace {

thread_local const CallCheck* t_check = nullptr;

}  // namespace

CallCheck::CallCheck(MayReach may_reach, UnpackRefused unpack_refused)
    : may_reach_(std::move(may_reach)),
      unpack_refused_(std::move(unpack_refused)),
      outer_(std::exchange(t_check, this)) {}

CallCheck::~CallCheck() { t_check = outer_; }

bool CallCheck::refuses(int socket, const sockaddr* address, socklen_t size) {
  if (t_check == nullptr || address == nullptr) return false;
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return false;
  if (t_check->may_reach_(*address, size, socket)) return false;
  errno = EACCES;
  return true;
}

bool CallCheck::refuses_unpacking() {
  if (t_check == nullptr || !t_check->unpack_refused_) return false;
  t_check->unpack_refused_();
  return true;
}

}  // namespace framelane

// These stand in front of the C library's and zlib's.

extern "C" int connect(int socket, const sockaddr* address, socklen_t size) {
  if (framelane::CallCheck::refuses(socket, address, size)) return -1;
  static const auto next = reinterpret_cast<decltype(&connect)>(dlsym(RTLD_NEXT, "connect"));
  return next(socket, address, size);
}

extern "C" ssize_t sendto(int socket, const void* data, size_t bytes, int flags,
                          const sockaddr* address, socklen_t size) {
  if (framelane::CallCheck::refuses(socket, address, size)) return -1;
  static const auto next = reinterpret_cast<decltype(&sendto)>(dlsym(RTLD_NEXT, "sendto"));
  return next(socket, data, bytes, flags, address, size);
}

extern "C" int uncompress(unsigned char* to, unsigned long* to_size, const unsigned char* from,
                          unsigned long from_size) {
  constexpr int kDataError = -3;  // Z_DATA_ERROR
  if (framelane::CallCheck::refuses_unpacking()) return kDataError;
  static const auto next = reinterpret_cast<decltype(&uncompress)>(dlsym(RTLD_NEXT, "uncompress"));
  return next(to, to_size, from, from_size);
}
