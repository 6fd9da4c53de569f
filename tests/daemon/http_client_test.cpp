#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "daemon/http_client.hpp"
#include "daemon/listen_socket.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Accepts one client, sends it exactly `answer`, and closes the connection.
class CannedServer {
 public:
  explicit CannedServer(std::string answer)
      : socket_(listen_on(parse_socket_address("127.0.0.1:0"), "127.0.0.1:0")),
        thread_([this, text = std::move(answer)] {
          pollfd ready{socket_.fd.get(), POLLIN, 0};
          if (poll(&ready, 1, 5000) != 1) return;
          const FileDescriptor client(::accept(socket_.fd.get(), nullptr, nullptr));
          char request[1000];
          if (::recv(client.get(), request, sizeof request, 0) <= 0) return;
          ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
        }) {}
  const std::string& address() const { return socket_.address; }

 private:
  ListenSocket socket_;
  std::jthread thread_;
};

TEST(HttpClientTest, ReadsStatusAndBody) {
  const CannedServer server("HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nwait");
  const FetchResult result = http_get(server.address(), "/", 5s);
  EXPECT_EQ(result.status, 503);
  EXPECT_EQ(result.body, "wait");
}

TEST(HttpClientTest, ACutOffAnswerIsAnError) {
  const CannedServer server("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\nshort");
  EXPECT_THAT([&] { http_get(server.address(), "/", 5s); },
              ThrowsMessage<std::runtime_error>(HasSubstr("cut off")));
}

TEST(HttpClientTest, SomethingElseThanHttpIsAnError) {
  const CannedServer server("SSH-2.0-OpenSSH_9.2\r\n\r\n");
  EXPECT_THAT([&] { http_get(server.address(), "/", 5s); },
              ThrowsMessage<std::runtime_error>(HasSubstr("not HTTP")));
}

TEST(HttpClientTest, AServerThatSaysNothingIsLate) {
  // The kernel completes the handshake, but nobody accepts the connection.
  const ListenSocket silent = listen_on(parse_socket_address("127.0.0.1:0"), "127.0.0.1:0");
  EXPECT_THAT([&] { http_get(silent.address, "/", 50ms); },
              ThrowsMessage<std::runtime_error>(HasSubstr("no answer in time")));
}

TEST(HttpClientTest, ARefusedConnectionSaysWhere) {
  std::string address;
  {
    const ListenSocket gone = listen_on(parse_socket_address("127.0.0.1:0"), "127.0.0.1:0");
    address = gone.address;
  }
  EXPECT_THAT([&] { http_get(address, "/", 5s); },
              ThrowsMessage<std::runtime_error>(address + ": cannot connect: Connection refused"));
}

TEST(HttpClientTest, AMissingUnixSocketIsAnError) {
  EXPECT_THROW(http_get("unix:/nonexistent/admin.sock", "/", 5s), std::runtime_error);
}

}  // namespace
}  // namespace framelane
