#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "config/process_config.hpp"
#include "daemon/http_client.hpp"
#include "pipeline/base/backoff.hpp"

namespace framelane {

/// An event, as it is sent. docs/webhooks.md has the form.
struct HookEvent {
  std::string_view kind;  ///< "segment" or "incident"
  std::string id;         ///< no other event has it
  std::string body;       ///< JSON
};

/// "sha256=" and the HMAC of "TIMESTAMP.BODY" in hexadecimal digits.
std::string hook_signature(std::string_view secret, std::string_view timestamp,
                           std::string_view body);

/// The request that delivers an event. `now` is its timestamp.
HttpCall hook_call(const HookConfig& hook, const HookEvent& event,
                   std::chrono::system_clock::time_point now);

/// What becomes of an event after a try.
enum class HookVerdict {
  kDelivered,
  kRetry,
  kFailed,  ///< another try would not help: it is given up
};
HookVerdict verdict_of(const HttpAnswer& answer);
/// Why an event was not delivered, for the log.
std::string why_not_delivered(const HttpAnswer& answer);

struct HookCounts {
  std::uint64_t delivered = 0;
  std::uint64_t failed = 0;
  std::uint64_t dropped = 0;  ///< there was no room, or no time at the end
  std::uint64_t retries = 0;
  std::size_t queued = 0;
};

/// The events that wait for one hook, in order. Reads no clock. Not thread-safe.
class HookQueue {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMost = 1000;
  static constexpr BackoffOptions kRetry{std::chrono::seconds(1), std::chrono::minutes(5)};

  explicit HookQueue(const BackoffOptions& retry = kRetry) : retry_(retry), backoff_(retry) {}

  /// The oldest event goes if there is no room, but not the one that is being sent.
  void push(std::shared_ptr<const HookEvent> event);
  bool empty() const { return events_.empty(); }
  /// When the first event may be sent: at once, unless it has failed.
  Clock::time_point due() const { return due_; }
  /// The first event, which is being sent from now on. There must be one.
  std::shared_ptr<const HookEvent> begin();
  /// What has come of that. `retry_after`: how long the receiver wants to be left alone.
  void end(HookVerdict verdict, std::chrono::seconds retry_after, Clock::time_point now);
  /// The receiver is another one: the next try need not wait.
  void forget_failures();
  /// Drops what waits; returns how many these are.
  std::size_t drop_all();
  HookCounts counts() const;

 private:
  const BackoffOptions retry_;
  Backoff backoff_;
  std::deque<std::shared_ptr<const HookEvent>> events_;
  bool sending_ = false;
  Clock::time_point due_{};
  HookCounts counts_;
};

}  // namespace framelane
