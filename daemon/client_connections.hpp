#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <list>
#include <string>

namespace framelane {

/// The admin listener's connections, in the order of their last completed request, or of their
/// start. At a limit, the one that has gone longest without is closed to make room. One thread.
class ClientConnections {
 public:
  struct Connection {
    int fd;
    std::string host;  ///< of the client; empty for Unix sockets
    bool closing = false;
    bool streams = false;  ///< it counts towards no limit of these
  };
  using Entry = std::list<Connection>::iterator;

  ClientConnections(std::size_t most, std::size_t most_of_address)
      : most_(most), most_of_address_(most_of_address) {}

  /// `fd` stays the caller's.
  Entry add(int fd);
  void remove(Entry entry) { all_.erase(entry); }
  void completed(Entry entry) { all_.splice(all_.end(), all_, entry); }

 private:
  void make_room(std::size_t most, const std::function<bool(const Connection&)>& counts);

  const std::size_t most_;
  const std::size_t most_of_address_;
  std::list<Connection> all_;
};

}  // namespace framelane
