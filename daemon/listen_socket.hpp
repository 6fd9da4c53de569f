#pragma once

#include <string>

#include "daemon/socket_address.hpp"

namespace framelane {

struct ListenSocket {
  FileDescriptor fd;
  std::string address;  ///< for parse_socket_address, with the real port
  bool local_only;      ///< only this machine can connect: loopback or a Unix socket
};

/// Binds and listens. A Unix socket gets mode 0660 and replaces one on which nobody listens any
/// more. `text` is the address as it was configured. Throws std::runtime_error with one sentence.
ListenSocket listen_on(const SocketAddress& address, const std::string& text);

}  // namespace framelane
