#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>

namespace framelane {

/// While it lives, connect() and sendto() of the thread that made it ask `may_reach` first, whoever
/// calls them: FFmpeg, or a library behind it. A refused call fails with EACCES and sends nothing.
/// So the address that is checked is the one that is used, whatever a name resolved to before. What
/// the C library's resolver sends is not checked, nor what other threads do (libsrt has its own).
///
/// This works because the program defines both functions itself, in front of the C library's.
class ConnectionCheck {
 public:
  /// For an address of the Internet of so many bytes, and the socket that would reach it. Does not
  /// throw.
  using MayReach = std::function<bool(const sockaddr&, std::size_t, int socket)>;

  explicit ConnectionCheck(MayReach may_reach);
  ~ConnectionCheck();
  ConnectionCheck(const ConnectionCheck&) = delete;
  ConnectionCheck& operator=(const ConnectionCheck&) = delete;

 private:
  const MayReach may_reach_;
  const MayReach* const outer_;
};

}  // namespace framelane
