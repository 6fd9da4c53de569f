#include "daemon/journal_socket.hpp"

namespace framelane {

JournalSocket::JournalSocket(const std::string& path) : address_(unix_address(path)) {}

bool JournalSocket::send(std::string_view record) {
  if (socket_.get() < 0) {
    socket_ = FileDescriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  // Without a connection, so that a journald that was started again is found.
  return ::sendto(socket_.get(), record.data(), record.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address_.storage), address_.length) >= 0;
}

}  // namespace framelane
