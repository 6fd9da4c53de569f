#pragma once

#include <netinet/in.h>

namespace framelane {

/// Whether only this machine can reach the address.
inline bool is_loopback(const in_addr& v4) { return ntohl(v4.s_addr) >> 24 == 127; }
inline bool is_loopback(const in6_addr& v6) {
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

}  // namespace framelane
