#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>

namespace framelane {

/// While it lives, calls of the thread that made it are checked, whoever makes them: FFmpeg, or a
/// library behind it.
///
/// connect() and sendto() ask `may_reach` first. A refused call fails with EACCES and sends
/// nothing. So the address that is checked is the one that is used, whatever a name resolved to
/// before. What the C library's resolver sends is not checked, nor what other threads do (libsrt
/// has its own).
///
/// With `unpack_refused`, zlib's uncompress() fails, and that is called. FFmpeg's demuxers unpack
/// headers with it at the size that the data claims, for which they have no limit: the index of old
/// QuickTime files (cmov) and the frames of ID3 tags. A few kilobytes would become gigabytes.
///
/// This works because the program defines these functions itself, in front of the libraries'.
class CallCheck {
 public:
  /// For an address of the Internet of so many bytes, and the socket that would reach it. Does not
  /// throw.
  using MayReach = std::function<bool(const sockaddr&, std::size_t, int socket)>;
  /// Does not throw.
  using UnpackRefused = std::function<void()>;

  explicit CallCheck(MayReach may_reach, UnpackRefused unpack_refused = nullptr);
  ~CallCheck();
  CallCheck(const CallCheck&) = delete;
  CallCheck& operator=(const CallCheck&) = delete;

  // For the functions that stand in front of the libraries'.
  /// True, with errno set, if this thread may not reach the address.
  static bool refuses(int socket, const sockaddr* address, socklen_t size);
  static bool refuses_unpacking();

 private:
  const MayReach may_reach_;
  const UnpackRefused unpack_refused_;
  const CallCheck* const outer_;
};

}  // namespace framelane
