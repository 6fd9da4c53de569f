#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/admin_server.hpp"
#include "daemon/http_client.hpp"
#include "tests/daemon/raw_client.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::RawClient;
using ::testing::StartsWith;

/// A stream of what a test says.
class Words : public HttpStream {
 public:
  std::optional<std::string> take() override {
    const std::lock_guard lock(mutex_);
    if (text_.empty() && ended_) return std::nullopt;
    return std::exchange(text_, {});
  }
  void say(const std::string& text) {
    {
      const std::lock_guard lock(mutex_);
      text_ += text;
    }
    more();
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    more();
  }

 private:
  std::mutex mutex_;
  std::string text_;
  bool ended_ = false;
};

class StreamTest : public ::testing::Test {
 protected:
  HttpResponse answer(const HttpRequest& request) {
    HttpResponse response{.content_type = "text/plain", .body = "quick"};
    if (request.path != "/stream") return response;
    const std::lock_guard lock(mutex_);
    streams_.push_back(std::make_shared<Words>());
    response.stream = streams_.back();
    response.stream_bytes = bytes_;
    return response;
  }
  /// The stream that this client gets.
  Words& begin(RawClient& client) {
    const std::size_t before = count();
    client.send("GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(testing::comes_true([&] { return count() > before; }));
    const std::lock_guard lock(mutex_);
    return *streams_.back();
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return streams_.size();
  }
  /// How many streams a connection still holds.
  std::size_t held() {
    const std::lock_guard lock(mutex_);
    std::size_t held = 0;
    for (const auto& stream : streams_) held += stream.use_count() > 1 ? 1 : 0;
    return held;
  }

  std::optional<HttpResponse> refusal() const {
    return refuses_ ? std::optional(HttpResponse{401}) : std::nullopt;
  }

  std::atomic<bool> refuses_ = false;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Words>> streams_;
  std::optional<std::uint64_t> bytes_;
  std::unique_ptr<AdminServer> server_ = std::make_unique<AdminServer>(
      "127.0.0.1:0", [this](const HttpRequest& request) { return answer(request); },
      AdminServerOptions{.refuse = [this](const HttpRequest&) { return refusal(); },
                         .idle_timeout = 1s});
};

TEST_F(StreamTest, WhatIsSaidArrivesAtOnceAndTheEndEndsTheAnswer) {
  RawClient client(server_->address());
  Words& words = begin(client);
  for (const std::string word : {"one", "two", "three"}) {
    words.say(word);
    EXPECT_THAT(client.receive_until(word + "\r\n"), EndsWith(word + "\r\n"));
  }
  words.end();
  EXPECT_EQ(client.receive_until("<never>"), "0\r\n\r\n");
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(testing::comes_true([&] { return held() == 0; }));
}

TEST_F(StreamTest, OneWhoseRequestIsRefusedByNowSaysNothingMoreAndEnds) {
  RawClient client(server_->address());
  Words& words = begin(client);
  words.say("one");
  EXPECT_THAT(client.receive_until("one\r\n"), StartsWith("HTTP/1.1 200"));
  refuses_ = true;
  words.say("two");
  EXPECT_EQ(client.receive_until("<never>"), "");  // no last chunk: it is not whole
  EXPECT_TRUE(client.closed());
}

TEST_F(StreamTest, OneOfAKnownLengthSaysItAndIsNotInChunks) {
  bytes_ = 100'000;
  RawClient client(server_->address());
  Words& words = begin(client);
  const std::string text(100'000, 'x');
  words.say(text);
  const std::string answer = client.receive_until("<never>");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 100000\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n" + text));
}

TEST_F(StreamTest, OneWhoseClientHasGoneEnds) {
  auto client = std::make_unique<RawClient>(server_->address());
  Words& words = begin(*client);
  client.reset();
  EXPECT_TRUE(testing::comes_true([&] {
    words.say("news");
    return held() == 0;
  }));
}

TEST_F(StreamTest, OneWhoseClientDoesNotReadIsClosed) {
  RawClient client(server_->address());
  Words& words = begin(client);
  EXPECT_TRUE(testing::comes_true([&] {
    words.say(std::string(100'000, 'x'));
    return held() == 0;
  }));
}

TEST_F(StreamTest, TheListenerEndsThoughStreamsDoNot) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(server_->address());
    begin(clients.back()).say("a word");
  }
  server_.reset();
  for (RawClient& client : clients) client.receive_until("<never>");
  for (const RawClient& client : clients) EXPECT_TRUE(client.closed());
  EXPECT_EQ(held(), 0u);
}

TEST_F(StreamTest, ManyStreamsAndSlowClientsHoldUpNoAnswer) {
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < AdminServer::kMaxStreams; ++i) {
    clients.emplace_back(server_->address());
    begin(clients.back());
  }
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(server_->address());
    if (i % 2 == 0) clients.back().send("GET /metr");
  }
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(http_get(server_->address(), "/quick", 5s).body, "quick");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10 * 100ms);
  RawClient another(server_->address());
  another.send("GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(another.receive_until("<never>"), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(held(), AdminServer::kMaxStreams);
}

}  // namespace
}  // namespace framelane
