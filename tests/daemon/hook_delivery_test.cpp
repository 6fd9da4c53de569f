// Not built for ThreadSanitizer: functions and a class that one thread uses.
#include "daemon/hook_delivery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace framelane {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const HookQueue::Clock::time_point kTime{std::chrono::hours(1)};

std::shared_ptr<const HookEvent> event_number(std::size_t number) {
  return std::make_shared<const HookEvent>(HookEvent{"segment", std::to_string(number), "{}"});
}

/// The first event, which is tried with this verdict.
std::string try_first(HookQueue& queue, HookVerdict verdict,
                      std::chrono::seconds retry_after = 0s) {
  std::string id = queue.begin()->id;
  queue.end(verdict, retry_after, kTime);
  return id;
}

TEST(HookDeliveryTest, TheSignatureIsTheOneThatOthersCompute) {
  EXPECT_EQ(hook_signature("0123456789abcdef", "1700000000", R"({"event":"segment"})"),
            "sha256=ffe908b83bd72491ef7e3a943652ed673f2455c756bc09e3895ef09277194bf8");
}

TEST(HookDeliveryTest, ARequestNamesItsEventAndIsSigned) {
  const HookConfig hook{
      .name = "h", .url = "https://h/", .secret = "0123456789abcdef", .timeout = 3s};
  const HookEvent event{"incident", "42", R"({"a":1})"};
  const HttpCall call =
      hook_call(hook, event, std::chrono::system_clock::from_time_t(1'700'000'000));
  EXPECT_EQ(call.url, "https://h/");
  EXPECT_EQ(call.body, R"({"a":1})");
  EXPECT_EQ(call.timeout, 3s);
  EXPECT_TRUE(call.check_certificate);
  EXPECT_THAT(call.headers,
              ElementsAre("Content-Type: application/json", "X-Framelane-Event: incident",
                          "X-Framelane-Delivery: 42", "X-Framelane-Timestamp: 1700000000",
                          "X-Framelane-Signature: " +
                              hook_signature(hook.secret, "1700000000", event.body)));
}

TEST(HookDeliveryTest, WithoutASecretNothingIsSigned) {
  const HttpCall call = hook_call({.url = "http://h/"}, {"segment", "1", "{}"}, {});
  EXPECT_EQ(call.headers.size(), 4U);
}

TEST(HookDeliveryTest, WhatAnotherTryMayHelpIsTriedAgain) {
  for (const int status : {0, 100, 408, 429, 500, 503, 599}) {
    EXPECT_EQ(verdict_of({.status = status}), HookVerdict::kRetry) << status;
  }
  for (const int status : {200, 204, 299}) {
    EXPECT_EQ(verdict_of({.status = status}), HookVerdict::kDelivered) << status;
  }
  for (const int status : {301, 400, 401, 404, 410}) {
    EXPECT_EQ(verdict_of({.status = status}), HookVerdict::kFailed) << status;
  }
}

TEST(HookDeliveryTest, AnAnswerThatIsNotWholeIsAnAnswer) {
  EXPECT_EQ(verdict_of({.status = 200, .problem = "the answer was cut off"}),
            HookVerdict::kDelivered);
  EXPECT_THAT(why_not_delivered({.status = 302, .problem = "the answer was cut off"}),
              HasSubstr("HTTP status 302, a redirect"));
}

TEST(HookQueueTest, EventsLeaveInTheirOrder) {
  HookQueue queue;
  for (std::size_t i = 0; i < 3; ++i) queue.push(event_number(i));
  EXPECT_EQ(try_first(queue, HookVerdict::kRetry), "0");
  EXPECT_EQ(try_first(queue, HookVerdict::kDelivered), "0");
  EXPECT_EQ(try_first(queue, HookVerdict::kFailed), "1");
  EXPECT_EQ(try_first(queue, HookVerdict::kDelivered), "2");
  EXPECT_TRUE(queue.empty());
  const HookCounts counts = queue.counts();
  EXPECT_EQ(counts.delivered, 2U);
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.retries, 1U);
  EXPECT_EQ(counts.dropped, 0U);
}

TEST(HookQueueTest, WaitsGrowToFiveMinutesAndBeginAnewAfterASuccess) {
  HookQueue queue;
  queue.push(event_number(0));
  queue.push(event_number(1));
  EXPECT_LE(queue.due(), kTime);
  HookQueue::Clock::duration longest{};
  for (int i = 0; i < 20; ++i) {
    try_first(queue, HookVerdict::kRetry);
    const auto wait = queue.due() - kTime;
    if (i == 0) {
      EXPECT_GE(wait, 800ms);
      EXPECT_LE(wait, 1200ms);
    }
    EXPECT_LE(wait, 5min);
    longest = std::max(longest, wait);
  }
  EXPECT_GE(longest, 4min);
  try_first(queue, HookVerdict::kDelivered);
  EXPECT_LE(queue.due(), kTime);
  try_first(queue, HookVerdict::kRetry);
  EXPECT_LE(queue.due() - kTime, 1200ms);
}

TEST(HookQueueTest, AReceiverMayAskForALongerWait) {
  HookQueue queue;
  queue.push(event_number(0));
  try_first(queue, HookVerdict::kRetry, 60s);
  EXPECT_EQ(queue.due() - kTime, 60s);
  try_first(queue, HookVerdict::kRetry, 3600s);
  EXPECT_EQ(queue.due() - kTime, 5min);
}

TEST(HookQueueTest, TheOldestGoesIfThereIsNoRoom) {
  HookQueue queue;
  for (std::size_t i = 0; i < HookQueue::kMost + 2; ++i) queue.push(event_number(i));
  EXPECT_EQ(queue.counts().queued, HookQueue::kMost);
  EXPECT_EQ(queue.counts().dropped, 2U);
  EXPECT_EQ(queue.begin()->id, "2");
}

TEST(HookQueueTest, WhatIsBeingSentDoesNotGo) {
  HookQueue queue;
  for (std::size_t i = 0; i < HookQueue::kMost; ++i) queue.push(event_number(i));
  EXPECT_EQ(queue.begin()->id, "0");
  queue.push(event_number(HookQueue::kMost));
  queue.end(HookVerdict::kDelivered, 0s, kTime);
  EXPECT_EQ(queue.begin()->id, "2");
  const HookCounts counts = queue.counts();
  EXPECT_EQ(counts.delivered, 1U);
  EXPECT_EQ(counts.dropped, 1U);
}

TEST(HookQueueTest, WhatWaitsAtTheEndIsDropped) {
  HookQueue queue;
  queue.push(event_number(0));
  queue.push(event_number(1));
  EXPECT_EQ(queue.drop_all(), 2U);
  EXPECT_EQ(queue.drop_all(), 0U);
  EXPECT_EQ(queue.counts().dropped, 2U);
}

}  // namespace
}  // namespace framelane
