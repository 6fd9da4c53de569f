// The admin listener with TLS and with tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "config/tls_certificate.hpp"
#include "daemon/admin_access.hpp"
#include "daemon/admin_server.hpp"
#include "daemon/http_client.hpp"
#include "daemon/socket_address.hpp"
#include "tests/config/tls_files.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

AdminConfig with_new_certificate(int ends = 3600) {
  const test::TlsPair pair = test::make_tls_pair("framelane", ends);
  TlsCertificate::Problems problems;
  AdminConfig config;
  config.certificate = TlsCertificate::parse(pair.certificate, pair.key, problems);
  if (!config.certificate) throw std::runtime_error(problems.certificate + problems.key);
  return config;
}

HttpResponse say_path(const HttpRequest& request) { return {200, "text/plain", request.path, {}}; }

FileDescriptor connect_to(const std::string& listener) {
  const AddrInfoList list = resolve(parse_socket_address(listener), AI_NUMERICHOST);
  FileDescriptor fd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0) {
    throw std::runtime_error("cannot connect");
  }
  return fd;
}

/// Whether the peer has closed the connection within `time`; what it sends is read.
bool closes(const FileDescriptor& fd, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::array<char, 4096> ignored;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd ready{fd.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) != 1) return false;
    if (::recv(fd.get(), ignored.data(), ignored.size(), 0) <= 0) return true;
  }
}

/// What this process has used.
std::chrono::nanoseconds processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

class AdminTlsTest : public ::testing::Test {
 protected:
  FetchResult get(const std::string& path, std::chrono::milliseconds timeout = 10s) const {
    return http_get(server_.address(), path, timeout, true);
  }

  const std::shared_ptr<AdminAccess> access_ =
      std::make_shared<AdminAccess>(with_new_certificate());
  AdminServer server_{
      "127.0.0.1:0",
      say_path,
      {.takes_long = [](const HttpRequest& request) { return request.path == "/slow"; },
       .idle_timeout = 1s,
       .access = access_}};
};

TEST_F(AdminTlsTest, AnswersThroughTls) {
  EXPECT_TRUE(server_.uses_tls());
  EXPECT_EQ(get("/x").body, "/x");
}

TEST_F(AdminTlsTest, AnswersWhatTakesLongOnAnotherThread) { EXPECT_EQ(get("/slow").body, "/slow"); }

TEST_F(AdminTlsTest, PlainTextGetsNoAnswer) {
  EXPECT_THROW(http_get(server_.address(), "/x", 10s), std::runtime_error);
  EXPECT_EQ(get("/x").status, 200);
}

TEST_F(AdminTlsTest, AUrlsCertificateHasToComeFromAnAuthority) {
  EXPECT_THAT([&] { http_get("https://" + server_.address(), "/x", 10s); },
              ThrowsMessage<std::runtime_error>(HasSubstr("its certificate is not accepted")));
}

TEST_F(AdminTlsTest, APlainListenerIsNoTlsPeer) {
  const AdminServer plain("127.0.0.1:0", say_path);
  EXPECT_FALSE(plain.uses_tls());
  EXPECT_THAT([&] { http_get(plain.address(), "/x", 10s, true); },
              ThrowsMessage<std::runtime_error>(HasSubstr("no TLS connection")));
}

// Handshakes on the listener's thread, while another one gives it certificates.
TEST_F(AdminTlsTest, CertificatesChangeWhileClientsConnect) {
  std::atomic<bool> done = false;
  std::atomic<int> changes = 0;
  std::thread reloads([&] {
    const AdminConfig one = with_new_certificate();
    const AdminConfig other = with_new_certificate();
    while (!done) access_->replace(++changes % 2 == 0 ? one : other);
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get("/x").status, 200);
  done = true;
  reloads.join();
  EXPECT_GT(changes, 1);
}

TEST_F(AdminTlsTest, HandshakesThatDoNotEndHoldUpNobodyAndAreClosed) {
  // The first record of a handshake, which says that 512 more bytes follow.
  constexpr std::string_view kBegin("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  std::vector<FileDescriptor> slow;
  for (std::size_t i = 0; i < AdminServer::kMaxConnectionsPerAddress - 1; ++i) {
    slow.push_back(connect_to(server_.address()));
    if (i % 2 == 0) ::send(slow.back().get(), kBegin.data(), kBegin.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(get("/x").status, 200);
  const auto before = processor_time();
  for (const FileDescriptor& fd : slow) EXPECT_TRUE(closes(fd, 10s));
  EXPECT_LT(processor_time() - before, 250ms);  // of about a second
}

TEST_F(AdminTlsTest, AHandshakeThatDripsIsClosedToo) {
  const FileDescriptor fd = connect_to(server_.address());
  const std::string record =
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(501, 'x');
  std::size_t sent = 0;
  while (sent < record.size() && !closes(fd, 100ms)) {
    ::send(fd.get(), &record[sent++], 1, MSG_NOSIGNAL);
  }
  EXPECT_LT(sent, 100U);
}

/// The answer to a request, in plain text.
std::string ask(const std::string& listener, std::string_view request) {
  const FileDescriptor fd = connect_to(listener);
  ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  std::array<char, 4096> chunk;
  ssize_t got = 0;
  while ((got = ::recv(fd.get(), chunk.data(), chunk.size(), 0)) > 0) {
    answer.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return answer;
}

TEST(AdminTokensTest, WithTokensAnyNameIsServed) {
  constexpr std::string_view kRequest =
      "GET /x HTTP/1.1\r\nHost: cameras.example.org\r\nConnection: close\r\n\r\n";
  AdminConfig config;
  config.tokens = {{AdminRole::kRead, "0123456789abcdef"}};
  const auto access = std::make_shared<AdminAccess>(config);
  const AdminServer server("127.0.0.1:0", say_path, {.access = access});
  EXPECT_THAT(ask(server.address(), kRequest), HasSubstr("HTTP/1.1 200"));
  access->replace({});
  EXPECT_THAT(ask(server.address(), kRequest), HasSubstr("HTTP/1.1 403"));
}

TEST(AdminHeadersTest, EveryAnswerHasTheSecurityHeaders) {
  const AdminServer server("127.0.0.1:0", say_path);
  const std::string answer = ask(server.address(), "GET /x HTTP/1.0\r\n\r\n");
  for (const char* header :
       {"Cache-Control: no-store\r\n",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
        "Cross-Origin-Resource-Policy: same-origin\r\n", "Referrer-Policy: no-referrer\r\n",
        "X-Content-Type-Options: nosniff\r\n"}) {
    EXPECT_THAT(answer, HasSubstr(header));
  }
}

}  // namespace
}  // namespace framelane
