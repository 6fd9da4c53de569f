// Not built for ThreadSanitizer: a check belongs to one thread.
#include "pipeline/source/call_check.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <thread>

#include "pipeline/base/file_descriptor.hpp"

namespace framelane {
namespace {

/// A socket at a free port of 127.0.0.1 that others can connect to, or send to.
class Peer {
 public:
  explicit Peer(int type) : socket_(::socket(AF_INET, type, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    EXPECT_EQ(::bind(socket_.get(), address(), size), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(::listen(socket_.get(), 1), 0);
    }
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  /// The errno value of connecting to it; 0 if that works.
  int connect_error() const {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    return ::connect(socket.get(), address(), sizeof address_) == 0 ? 0 : errno;
  }
  int send_error() const {
    const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
    return ::sendto(socket.get(), "x", 1, 0, address(), sizeof address_) == 1 ? 0 : errno;
  }
  /// What has been sent to it.
  ssize_t received() const {
    std::array<char, 8> data{};
    return ::recv(socket_.get(), data.data(), data.size(), MSG_DONTWAIT);
  }

 private:
  FileDescriptor socket_;
  sockaddr_in address_{};
};

bool nothing(const sockaddr& /*address*/, std::size_t /*size*/, int /*socket*/) { return false; }

TEST(CallCheckTest, ARefusedAddressIsNotReached) {
  const Peer stream(SOCK_STREAM);
  const Peer datagrams(SOCK_DGRAM);
  {
    const CallCheck check(nothing);
    EXPECT_EQ(stream.connect_error(), EACCES);
    EXPECT_EQ(datagrams.send_error(), EACCES);
  }
  EXPECT_EQ(datagrams.received(), -1);
  EXPECT_EQ(stream.connect_error(), 0);
  EXPECT_EQ(datagrams.send_error(), 0);
  EXPECT_EQ(datagrams.received(), 1);
}

TEST(CallCheckTest, TheAddressThatIsUsedIsTheOneThatIsChecked) {
  const Peer peer(SOCK_STREAM);
  const sockaddr* seen = nullptr;
  std::size_t bytes = 0;
  const CallCheck check([&](const sockaddr& address, std::size_t size, int /*socket*/) {
    seen = &address;
    bytes = size;
    return true;
  });
  EXPECT_EQ(peer.connect_error(), 0);
  EXPECT_EQ(seen, peer.address());
  EXPECT_EQ(bytes, sizeof(sockaddr_in));
}

TEST(CallCheckTest, OtherThreadsAndLocalSocketsAreNotChecked) {
  const Peer peer(SOCK_STREAM);
  const CallCheck check(nothing);
  int other = -1;
  std::thread([&] { other = peer.connect_error(); }).join();
  EXPECT_EQ(other, 0);

  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/no-such-socket"};
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(CallCheckTest, TheOuterCheckHoldsAgainAfterAnInnerOne) {
  const Peer peer(SOCK_STREAM);
  const CallCheck outer(nothing);
  {
    const CallCheck inner([](const sockaddr&, std::size_t, int) { return true; });
    EXPECT_EQ(peer.connect_error(), 0);
  }
  EXPECT_EQ(peer.connect_error(), EACCES);
}

}  // namespace
}  // namespace framelane
