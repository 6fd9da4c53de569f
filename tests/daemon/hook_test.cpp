#include "daemon/hook.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/admin_server.hpp"
#include "daemon/hooks.hpp"
#include "daemon/listen_socket.hpp"
#include "tests/pipeline/base/wait.hpp"

namespace framelane {
namespace {

using namespace std::chrono_literals;
using testing::comes_true;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr BackoffOptions kAtOnce{1ms, 1ms};

std::shared_ptr<const HookEvent> event_of(std::string body) {
  return std::make_shared<const HookEvent>(HookEvent{"segment", "id-" + body, std::move(body)});
}

/// Takes events, and answers with one status after the other; with 200 when there is none.
class Receiver {
 public:
  explicit Receiver(std::vector<int> statuses = {}) : statuses_(std::move(statuses)) {}

  HookConfig hook(std::string name = "h") const {
    return {.name = std::move(name),
            .url = "http://" + server_.address() + "/in",
            .on_segment = true,
            .on_incident = true};
  }
  std::vector<std::string> bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  HttpResponse answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    bodies_.push_back(request.method == "POST" ? request.body : request.method);
    if (statuses_.empty()) return {.body = "thanks"};
    const int status = statuses_.front();
    statuses_.erase(statuses_.begin());
    return {.status = status, .body = "no"};
  }

  mutable std::mutex mutex_;
  std::vector<int> statuses_;
  std::vector<std::string> bodies_;
  AdminServer server_{"127.0.0.1:0",
                      [this](const HttpRequest& request) { return answer(request); }};
};

/// Accepts connections, and says nothing.
class SilentReceiver {
 public:
  HookConfig hook() const { return {.name = "h", .url = "http://" + socket_.address + "/"}; }

 private:
  const ListenSocket socket_ = listen_on(parse_socket_address("127.0.0.1:0"), "127.0.0.1:0");
};

TEST(HookTest, DeliversInOrderAndTriesAgain) {
  const Receiver receiver({500, 200, 400, 429});
  Hook hook(receiver.hook(), kAtOnce);
  for (const char* body : {"a", "b", "c"}) hook.push(event_of(body));
  ASSERT_TRUE(comes_true([&] { return hook.counts().queued == 0; }));
  EXPECT_THAT(receiver.bodies(), ElementsAre("a", "a", "b", "c", "c"));
  const HookCounts counts = hook.counts();
  EXPECT_EQ(counts.delivered, 2U);
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.retries, 2U);
}

TEST(HookTest, WhatWaitsGoesToTheNewAddress) {
  const SilentReceiver silent;
  const Receiver receiver;
  HookConfig config = silent.hook();
  config.timeout = 50ms;
  Hook hook(config, {1h, 1h});
  hook.push(event_of("a"));
  hook.push(event_of("b"));
  ASSERT_TRUE(comes_true([&] { return hook.counts().retries == 1; }));
  hook.change(receiver.hook());
  ASSERT_TRUE(comes_true([&] { return hook.counts().delivered == 2; }));
  EXPECT_THAT(receiver.bodies(), ElementsAre("a", "b"));
}

TEST(HookTest, AtTheEndWhatWaitsIsDelivered) {
  const Receiver receiver({500});
  Hook hook(receiver.hook(), {1h, 1h});
  hook.push(event_of("a"));
  hook.push(event_of("b"));
  ASSERT_TRUE(comes_true([&] { return hook.counts().retries == 1; }));
  hook.finish(Hook::Clock::now() + 1min);
  hook.wait_finished();
  EXPECT_THAT(receiver.bodies(), ElementsAre("a", "a", "b"));
  EXPECT_EQ(hook.counts().delivered, 2U);
}

TEST(HookTest, AtTheEndAFailureIsTheLastTry) {
  const Receiver receiver({500, 500});
  Hook hook(receiver.hook(), {1h, 1h});
  hook.push(event_of("a"));
  hook.push(event_of("b"));
  ASSERT_TRUE(comes_true([&] { return hook.counts().retries == 1; }));
  hook.finish(Hook::Clock::now() + 1min);
  hook.wait_finished();
  EXPECT_EQ(hook.counts().delivered, 0U);
  EXPECT_EQ(hook.counts().dropped, 2U);
}

TEST(HookTest, ASilentReceiverDoesNotHoldUpTheEnd) {
  const SilentReceiver silent;
  Hook hook(silent.hook());
  hook.push(event_of("a"));
  const auto begin = Hook::Clock::now();
  hook.finish(begin + 50ms);
  hook.wait_finished();
  EXPECT_LT(Hook::Clock::now() - begin, 5s);  // its own timeout is 10 s
  EXPECT_EQ(hook.counts().dropped, 1U);
}

class HooksTest : public ::testing::Test {
 protected:
  std::vector<nlohmann::json> received() const {
    std::vector<nlohmann::json> events;
    for (const std::string& body : receiver_.bodies())
      events.push_back(nlohmann::json::parse(body));
    return events;
  }
  /// The ids of incidents that were told, with "begin" or "end", when so many have been.
  std::vector<std::string> told(std::size_t count) const {
    EXPECT_TRUE(comes_true([&] { return receiver_.bodies().size() >= count; }));
    std::vector<std::string> told;
    for (const nlohmann::json& event : received()) {
      const nlohmann::json& incident = event["incident"];
      told.push_back(incident["id"].dump() + (incident["end"].is_null() ? " begin" : " end"));
    }
    return told;
  }
  static Incident incident(std::uint64_t id, bool over) {
    Incident incident{.id = id, .kind = IncidentKind::kSourceLost, .feed = "gate"};
    if (over) incident.end = incident.begin;
    return incident;
  }

  const Receiver receiver_;
  Hooks hooks_{{receiver_.hook()}};
};

TEST_F(HooksTest, AFileIsToldWithWhatIsKnownOfIt) {
  const CompletedFile::Time begin{std::chrono::milliseconds(1'700'000'000'123)};
  hooks_.file_completed({.feed = "gate",
                         .output = "rec",
                         .path = "/rec/a.mp4",
                         .begin = begin,
                         .end = begin + 60s,
                         .bytes = 7});
  hooks_.file_completed(
      {.feed = "gate", .output = "rec", .path = "/rec/b.mp4", .begin = {}, .end = {}});
  ASSERT_TRUE(comes_true([&] { return receiver_.bodies().size() == 2; }));
  nlohmann::json first = received()[0];
  EXPECT_EQ(first["id"].get<std::string>().size(), 32U);
  EXPECT_NE(first["id"], received()[1]["id"]);
  EXPECT_FALSE(first["host"].get<std::string>().empty());
  for (const char* key : {"id", "time", "host"}) first.erase(key);
  EXPECT_EQ(first, nlohmann::json::parse(
                       R"({"event":"segment","feed":"gate","output":"rec","file":"/rec/a.mp4",)"
                       R"("begin":"2023-11-14T22:13:20.123Z","end":"2023-11-14T22:14:20.123Z",)"
                       R"("bytes":7})"));
  EXPECT_TRUE(received()[1]["begin"].is_null());
}

TEST_F(HooksTest, AnIncidentIsToldWhenItBeginsAndWhenItEnds) {
  hooks_.incidents_changed({incident(1, false), incident(3, false), incident(2, true)});
  hooks_.incidents_changed({incident(1, false)});  // one more try
  hooks_.incidents_changed({incident(3, true), incident(1, true)});
  hooks_.incidents_changed({incident(1, true)});
  hooks_.incidents_changed({incident(1, false)});  // the same cause again
  EXPECT_THAT(told(6), ElementsAre("1 begin", "3 begin", "2 end", "3 end", "1 end", "1 begin"));
}

TEST_F(HooksTest, AReloadKeepsTheCountsOfAHookThatStays) {
  const Receiver other;
  hooks_.file_completed({});
  ASSERT_TRUE(comes_true([&] { return hooks_.counts()[0].second.delivered == 1; }));
  HookConfig incidents_only = receiver_.hook();
  incidents_only.on_segment = false;
  hooks_.replace({other.hook("new"), incidents_only});
  hooks_.file_completed({});
  ASSERT_TRUE(comes_true([&] { return hooks_.counts()[0].second.delivered == 1; }));
  EXPECT_EQ(hooks_.counts()[0].first, "new");
  EXPECT_EQ(hooks_.counts()[1].second.delivered, 1U);
  EXPECT_EQ(receiver_.bodies().size(), 1U);
  hooks_.replace({});
  EXPECT_THAT(hooks_.counts(), IsEmpty());
}

TEST_F(HooksTest, AHookThatAReloadMakesBesideAStopEndsWithTheOthers) {
  const Receiver other;
  hooks_.finish(Hooks::Clock::now());
  hooks_.replace({receiver_.hook(), other.hook("new")});
  hooks_.file_completed({});
  const auto ended = std::async(std::launch::async, [&] { hooks_.wait_finished(); });
  EXPECT_TRUE(comes_true([&] { return ended.wait_for(0s) == std::future_status::ready; }));
  hooks_.finish(Hooks::Clock::now());  // so that the test ends if that was wrong
  ended.wait();
  for (const auto& [name, counts] : hooks_.counts()) {
    EXPECT_EQ(counts.queued, 0U) << name;
    EXPECT_EQ(counts.delivered + counts.dropped, 1U) << name;
  }
}

}  // namespace
}  // namespace framelane
