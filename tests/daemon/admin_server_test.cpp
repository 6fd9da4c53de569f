// Longer than 400 lines: all tests of the listener share its clients and fixtures.
#include "daemon/admin_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "daemon/http_client.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "tests/daemon/raw_client.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

constexpr auto kTimeout = 5s;

HttpResponse echo(const HttpRequest& request) {
  return {200, "text/plain", request.method + " " + request.path + " " + request.body, {}};
}

bool every_request(const HttpRequest& /*request*/) { return true; }

class AdminServerTest : public ::testing::Test {
 protected:
  std::string ask(const std::string& request) { return RawClient(server_.address()).ask(request); }
  std::string ask_as(const std::string& host) {
    return ask("GET /x HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }

  AdminServer server_{"127.0.0.1:0", echo};
};

// The listener's own thread answers the others meanwhile.
TEST(SlowAnswerTest, ARequestThatTakesLongHoldsUpNoOther) {
  std::promise<void> go_on;
  const std::shared_future<void> gone_on = go_on.get_future().share();
  AdminServer server(
      "127.0.0.1:0",
      [&](const HttpRequest& request) {
        if (request.path == "/slow") gone_on.wait();
        return echo(request);
      },
      {.takes_long = [](const HttpRequest& request) { return request.path == "/slow"; }});
  RawClient slow(server.address());
  slow.send(
      "POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
      "Connection: close\r\n\r\nbody");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(http_get(server.address(), "/quick", std::chrono::seconds(10)).status, 200);
  }
  go_on.set_value();
  EXPECT_NE(slow.receive_until("<never>").find("POST /slow body"), std::string::npos);
}

TEST(SlowAnswerTest, WhereTooManyAreUnderWayAnotherIsRefusedAtOnce) {
  std::promise<void> go_on;
  const std::shared_future<void> gone_on = go_on.get_future().share();
  std::atomic<bool> reload_begun = false;
  AdminServer server("127.0.0.1:0",
                     [&](const HttpRequest& request) {
                       if (request.path == "/reload") reload_begun = true;
                       gone_on.wait();
                       return echo(request);
                     },
                     {.takes_long = every_request});
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i <= AdminServer::kMaxAnswering; ++i) {
    clients.emplace_back(server.address());
    clients.back().send("GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  // Whichever was last.
  EXPECT_TRUE(testing::comes_true([&] {
    return std::ranges::any_of(clients, [](RawClient& client) {
      return client.receive_until("<never>", 0ms).starts_with("HTTP/1.1 503");
    });
  }));
  // There is room for a reload all the same.
  RawClient control(server.address());
  control.send("POST /reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(testing::comes_true([&] { return reload_begun.load(); }));
  go_on.set_value();
  EXPECT_THAT(control.receive_until("<never>"), StartsWith("HTTP/1.1 200"));
}

TEST(SlowAnswerTest, WhatIsRefusedTakesNoThread) {
  std::promise<void> go_on;
  const std::shared_future<void> gone_on = go_on.get_future().share();
  std::atomic<std::size_t> begun = 0;
  AdminServer server("127.0.0.1:0",
                     [&](const HttpRequest& request) {
                       ++begun;
                       gone_on.wait();
                       return echo(request);
                     },
                     {.takes_long = every_request, .refuse = [](const HttpRequest& request) {
                        return request.headers.contains("authorization")
                                   ? std::nullopt
                                   : std::optional(HttpResponse{401});
                      }});
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < AdminServer::kMaxAnswering; ++i) {
    clients.emplace_back(server.address());
    clients.back().send("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\n\r\n");
  }
  EXPECT_TRUE(testing::comes_true([&] { return begun == AdminServer::kMaxAnswering; }));
  EXPECT_EQ(http_get(server.address(), "/", kTimeout).status, 401);
  EXPECT_EQ(begun, AdminServer::kMaxAnswering);
  go_on.set_value();
}

TEST(UnsentAnswersTest, BeyondALimitLongAnswersAreRefusedUntilOthersAreSent) {
  constexpr std::size_t kLong = AdminServer::kMaxUnsentBytes / 2;
  AdminServer server(
      "127.0.0.1:0",
      [](const HttpRequest& request) {
        if (request.path == "/quick") return echo(request);
        return HttpResponse{200, "text/plain", std::string(kLong, 'x')};
      },
      {.takes_long = [](const HttpRequest& request) { return request.path == "/long"; },
       .idle_timeout = 60s});
  // The answer's begin; the rest waits.
  const auto begin = [](RawClient& client, const std::string& path) {
    client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return client.receive_until("x");
  };
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server.address());
    EXPECT_THAT(begin(clients.back(), "/long"), StartsWith("HTTP/1.1 200"));
  }
  RawClient late(server.address());
  const std::string refused = begin(late, "/long");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 60\r\n"));
  EXPECT_EQ(http_get(server.address(), "/quick", kTimeout).status, 200);
  EXPECT_EQ(http_get(server.address(), "/large", kTimeout).status, 503);
  clients.clear();
  EXPECT_TRUE(testing::comes_true([&] {
    RawClient client(server.address());
    return begin(client, "/long").starts_with("HTTP/1.1 200");
  }));
}

TEST(SlowAnswerTest, OneThatIsStuckDoesNotHoldUpTheEnd) {
  static std::promise<void> never;  // the thread uses it after the test
  static const std::shared_future<void> stuck = never.get_future().share();
  const std::uint64_t before = threads_stuck();
  std::promise<void> asked;
  {
    AdminServer server("127.0.0.1:0",
                       [&](const HttpRequest& request) {
                         asked.set_value();
                         stuck.wait();
                         return echo(request);
                       },
                       {.takes_long = every_request});
    RawClient client(server.address());
    client.send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_EQ(asked.get_future().wait_for(60s), std::future_status::ready);
  }
  EXPECT_EQ(threads_stuck(), before + 1);
  never.set_value();
  EXPECT_TRUE(testing::comes_true([&] { return threads_stuck() == before; }));
}

TEST(SlowAnswerTest, TheListenerEndsAfterTheAnswersThatAreUnderWay) {
  std::promise<void> asked;
  std::promise<void> go_on;
  std::atomic<bool> answered{false};
  auto server = std::make_unique<AdminServer>(
      "127.0.0.1:0",
      [&](const HttpRequest& request) {
        asked.set_value();
        go_on.get_future().wait();
        answered = true;
        return echo(request);
      },
      AdminServerOptions{.takes_long = every_request});
  RawClient client(server->address());
  client.send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
  asked.get_future().wait();
  std::thread end([&] { server.reset(); });
  go_on.set_value();
  end.join();
  EXPECT_TRUE(answered);
}

TEST(OwnHeadersTest, AnAnswersOwnHeaderReplacesTheOneThatAllHave) {
  AdminServer server("127.0.0.1:0", [](const HttpRequest&) {
    return HttpResponse{200, "text/plain", "", {{"Cache-Control", "no-cache"}}};
  });
  const std::string answer = RawClient(server.address())
                                 .ask(
                                     "GET / HTTP/1.1\r\nHost: localhost\r\n"
                                     "Connection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Cache-Control: no-cache\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("no-store")));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
}

TEST_F(AdminServerTest, AnswersAGet) {
  const FetchResult result = http_get(server_.address(), "/some/path?x=1", kTimeout);
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.body, "GET /some/path ");
}

TEST_F(AdminServerTest, AddressHasTheRealPort) {
  EXPECT_THAT(server_.address(), StartsWith("127.0.0.1:"));
  EXPECT_THAT(server_.address(), Not(EndsWith(":0")));
}

TEST_F(AdminServerTest, UrlsWithAPathAreFetchedBelowIt) {
  EXPECT_EQ(http_get("http://" + server_.address() + "/base/", "/x", kTimeout).body,
            "GET /base/x ");
}

// libmicrohttpd would end the path or the parameter there.
TEST_F(AdminServerTest, ANulInAnAddressIsRefused) {
  const auto answer = [&](const std::string& address) {
    return ask("GET " + address + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  };
  for (const char* const address : {"/healthz%00", "/a%00/b", "/%%00x", "/x?%00=1"}) {
    EXPECT_THAT(answer(address), StartsWith("HTTP/1.1 400")) << address;
    EXPECT_THAT(answer(address), HasSubstr(R"("wrong_parameter")")) << address;
    EXPECT_THAT(answer(address), HasSubstr(R"("key":null)")) << address;
  }
  EXPECT_THAT(answer("/x?a=1&feed=gate%00&b=2"), HasSubstr(R"("key":"feed")"));
  EXPECT_THAT(answer("/x?feed=%00"), StartsWith("HTTP/1.1 400"));
  // This is a percent sign.
  EXPECT_THAT(answer("/a%2500"), HasSubstr("GET /a%00 "));
}

TEST_F(AdminServerTest, HeadHasTheLengthAndNoBody) {
  const std::string answer =
      ask("HEAD /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(AdminServerTest, OneConnectionServesManyRequests) {
  RawClient client(server_.address());
  for (int i = 0; i < 3; ++i) {
    client.send("GET /kept HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.receive_until("GET /kept "), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(AdminServerTest, BodiesReachTheHandler) {
  EXPECT_THAT(ask("POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  "Content-Length: 5\r\n\r\nhello"),
              EndsWith("POST /x hello"));
}

TEST_F(AdminServerTest, AnAnnouncedBodyThatIsTooLargeIsRefused) {
  const std::string answer =
      ask("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(answer, HasSubstr(R"({"error":{"code":"body_too_large")"));
}

TEST_F(AdminServerTest, AChunkedBodyThatIsTooLargeIsRefused) {
  std::string request =
      "POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 5; ++i) request += "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  EXPECT_THAT(ask(request + "0\r\n\r\n"), StartsWith("HTTP/1.1 413"));
}

TEST_F(AdminServerTest, AHeaderThatIsTooLargeIsRefused) {
  EXPECT_THAT(
      ask("GET /x HTTP/1.1\r\nHost: localhost\r\nX-Long: " + std::string(20000, 'x') + "\r\n\r\n"),
      StartsWith("HTTP/1.1 431"));
}

TEST_F(AdminServerTest, LoopbackServesLocalNamesAndAddresses) {
  for (const std::string host : {"localhost", "LOCALHOST:1", "127.0.0.1:9853", "[::1]:80"}) {
    EXPECT_THAT(ask_as(host), StartsWith("HTTP/1.1 200")) << host;
  }
}

TEST_F(AdminServerTest, LoopbackRefusesOtherNames) {
  for (const std::string host :
       {"evil.example", "framelane", "localhost.evil.example", "evil.example:80"}) {
    EXPECT_THAT(ask_as(host), StartsWith("HTTP/1.1 403")) << host;
  }
}

TEST_F(AdminServerTest, AHostThatOnlyBeginsLikeAnAddressIsRefused) {
  for (const std::string host :
       {"[::1].evil.example", "[::1", "[x", "[127.0.0.1]", "[localhost]", "[::1]80", "::1",
        "127.0.0.1:80.evil.example", "localhost:evil", "localhost@evil.example", "a b", ":80"}) {
    const std::string answer = ask_as(host);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400")) << host;
    EXPECT_THAT(answer, HasSubstr(R"({"error":{"code":"bad_host")")) << host;
  }
}

TEST_F(AdminServerTest, TwoHostsAreRefusedInEitherOrder) {
  for (const std::string hosts : {"localhost\r\nHost: evil.example", "evil.example\r\nhost: ::1",
                                  "localhost\r\nHost: localhost"}) {
    EXPECT_THAT(ask_as(hosts), StartsWith("HTTP/1.1 400")) << hosts;
  }
}

TEST_F(AdminServerTest, FailureOfTheHandlerIsAnErrorWithoutItsText) {
  const AdminServer failing("127.0.0.1:0", [](const HttpRequest&) -> HttpResponse {
    throw std::runtime_error("secret");
  });
  const FetchResult result = http_get(failing.address(), "/", kTimeout);
  EXPECT_EQ(result.status, 500);
  EXPECT_THAT(result.body, Not(HasSubstr("secret")));
}

TEST_F(AdminServerTest, SlowClientsDoNotHoldUpAnAnswer) {
  std::vector<RawClient> slow;
  for (int i = 0; i < 40; ++i) {
    slow.emplace_back(server_.address());
    if (i % 2 == 0) slow.back().send("GET /metrics HT");  // the others send nothing
  }
  EXPECT_EQ(http_get(server_.address(), "/metrics", 1s).status, 200);
}

TEST_F(AdminServerTest, ManyClientsOfOneAddressPushOutTheOldest) {
  RawClient first(server_.address());
  std::vector<RawClient> later;
  for (std::size_t i = 0; i < AdminServer::kMaxConnectionsPerAddress; ++i) {
    later.emplace_back(server_.address());
  }
  EXPECT_EQ(first.receive_until("<never>"), "");  // closed by the server, well before the timeout
  later.back().send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(later.back().receive_until("GET /x "), StartsWith("HTTP/1.1 200"));
}

TEST_F(AdminServerTest, AClientThatAsksOutlivesOnesThatDoNot) {
  RawClient asks(server_.address());
  std::vector<RawClient> silent;
  for (std::size_t i = 0; i < 3 * AdminServer::kMaxConnectionsPerAddress; ++i) {
    silent.emplace_back(server_.address());
    if (i % 8 != 7) continue;
    asks.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_THAT(asks.receive_until("GET /x "), StartsWith("HTTP/1.1 200")) << i;
  }
}

TEST(AdminServerSilenceTest, ASilentClientIsClosed) {
  const AdminServer server("127.0.0.1:0", echo, {.idle_timeout = 1s});
  RawClient client(server.address());
  client.send("GET /x HTTP/1.1\r\nHost: ");
  std::string answer;
  // Each try waits longer than the server tolerates silence.
  for (int tries = 0; tries < 6 && !client.closed(); ++tries)
    answer += client.receive_until("<never>");
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(answer.find(" 200 "), std::string::npos) << answer;
}

TEST_F(AdminServerTest, StopsWithClientsConnected) {
  auto server = std::make_unique<AdminServer>("127.0.0.1:0", echo);
  RawClient half_open(server->address());
  half_open.send("GET /");
  server.reset();
  EXPECT_EQ(half_open.receive_until("<never>"), "");
}

TEST_F(AdminServerTest, AnAddressInUseIsOneSentence) {
  const std::string address = server_.address();
  EXPECT_THAT([&] { AdminServer(address, echo); },
              ThrowsMessage<std::runtime_error>("cannot listen on " + address +
                                                ": Address already in use; choose another address "
                                                "with admin.listen"));
}

TEST_F(AdminServerTest, WhatIsNoAddressIsRefused) {
  for (const std::string text : {"", "9853", ":9853", "host:", "host:99999", "::1:80", "unix:"}) {
    EXPECT_THROW(AdminServer(text, echo), std::runtime_error) << text;
  }
}

TEST(AdminServerIpv6Test, ListensOnV6Loopback) {
  const FileDescriptor probe(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) != 0) {
    GTEST_SKIP() << "no IPv6 here";
  }
  const AdminServer server("[::1]:0", echo);
  EXPECT_THAT(server.address(), StartsWith("[::1]:"));
  EXPECT_EQ(http_get(server.address(), "/x", kTimeout).body, "GET /x ");
}

class AdminServerPublicTest : public AdminServerTest {
 protected:
  std::string ask_as(const std::string& host) {
    const std::string port = public_.address().substr(public_.address().rfind(':'));
    return RawClient("127.0.0.1" + port)
        .ask("GET /x HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }
  AdminServer public_{"0.0.0.0:0", echo};
};

TEST_F(AdminServerPublicTest, ServesNamesThatNoForeignPageCanHave) {
  std::array<char, 256> machine{};
  gethostname(machine.data(), machine.size() - 1);
  for (const std::string host :
       {"192.0.2.7:9853", "framelane:9853", static_cast<const char*>(machine.data())}) {
    EXPECT_THAT(ask_as(host), StartsWith("HTTP/1.1 200")) << host;
  }
}

TEST_F(AdminServerPublicTest, RefusesNamesWithADomain) {
  EXPECT_THAT(ask_as("rebound.example:9853"), StartsWith("HTTP/1.1 403"));
}

TEST_F(AdminServerPublicTest, IsFetchedThroughTheWildcardAddress) {
  EXPECT_EQ(http_get(public_.address(), "/x", kTimeout).status, 200);
}

class AdminServerUnixTest : public ::testing::Test {
 protected:
  AdminServerUnixTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "admin-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ / "admin.sock";
  }
  ~AdminServerUnixTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  std::filesystem::path path_;
};

TEST_F(AdminServerUnixTest, AnswersOnASocketOfMode0660) {
  const AdminServer server("unix:" + path_.string(), echo);
  EXPECT_EQ(http_get(server.address(), "/x", kTimeout).body, "GET /x ");
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(path_).permissions()), 0660u);
}

TEST_F(AdminServerUnixTest, RemovesItsSocket) {
  { const AdminServer server("unix:" + path_.string(), echo); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(AdminServerUnixTest, ReplacesAStaleSocket) {
  {
    const FileDescriptor dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    const UnixAddress address = unix_address(path_);
    ASSERT_EQ(
        ::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length), 0);
  }
  const AdminServer server("unix:" + path_.string(), echo);
  EXPECT_EQ(http_get(server.address(), "/x", kTimeout).status, 200);
}

TEST_F(AdminServerUnixTest, LeavesASocketInUseAlone) {
  const AdminServer server("unix:" + path_.string(), echo);
  EXPECT_THROW(AdminServer("unix:" + path_.string(), echo), std::runtime_error);
  EXPECT_EQ(http_get(server.address(), "/x", kTimeout).status, 200);
}

TEST_F(AdminServerUnixTest, LeavesAFileAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_THROW(AdminServer("unix:" + path_.string(), echo), std::runtime_error);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

}  // namespace
}  // namespace framelane
