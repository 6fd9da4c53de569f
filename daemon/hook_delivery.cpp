#include "daemon/hook_delivery.hpp"

#include <fmt/core.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace framelane {
namespace {

/// An answer is read up to here, so that the connection can be used again, and then ignored.
constexpr std::size_t kMostAnswer = std::size_t{64} << 10U;

}  // namespace

std::string hook_signature(std::string_view secret, std::string_view timestamp,
                           std::string_view body) {
  const std::string text = fmt::format("{}.{}", timestamp, body);
  std::array<unsigned char, 32> digest{};
  const int error = gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret.data(), secret.size(), text.data(),
                                     text.size(), digest.data());
  if (error < 0) {
    throw std::runtime_error(std::string("cannot sign the event: ") + gnutls_strerror(error));
  }
  std::string signature = "sha256=";
  for (const unsigned char byte : digest) signature += fmt::format("{:02x}", byte);
  return signature;
}

HttpCall hook_call(const HookConfig& hook, const HookEvent& event,
                   std::chrono::system_clock::time_point now) {
  const std::string timestamp = std::to_string(std::chrono::system_clock::to_time_t(now));
  HttpCall call{.url = hook.url,
                .headers = {"Content-Type: application/json",
                            fmt::format("X-Framelane-Event: {}", event.kind),
                            fmt::format("X-Framelane-Delivery: {}", event.id),
                            fmt::format("X-Framelane-Timestamp: {}", timestamp)},
                .body = event.body,
                .use_proxy = true,
                .most_body = kMostAnswer,
                .timeout = hook.timeout};
  if (!hook.secret.empty()) {
    call.headers.push_back("X-Framelane-Signature: " +
                           hook_signature(hook.secret, timestamp, event.body));
  }
  return call;
}

HookVerdict verdict_of(const HttpAnswer& answer) {
  constexpr int kRequestTimeout = 408;
  constexpr int kTooManyRequests = 429;
  if (answer.status < 200) return HookVerdict::kRetry;
  if (answer.status < 300) return HookVerdict::kDelivered;
  const bool later = answer.status == kRequestTimeout || answer.status == kTooManyRequests;
  return later || answer.status >= 500 ? HookVerdict::kRetry : HookVerdict::kFailed;
}

std::string why_not_delivered(const HttpAnswer& answer) {
  if (answer.status < 200) return answer.problem;
  const bool redirect = answer.status >= 300 && answer.status < 400;
  return fmt::format("its receiver answers with HTTP status {}{}", answer.status,
                     redirect ? ", a redirect, which is not followed" : "");
}

void HookQueue::push(std::shared_ptr<const HookEvent> event) {
  if (events_.size() >= kMost) {
    events_.erase(events_.begin() + (sending_ ? 1 : 0));
    ++counts_.dropped;
  }
  events_.push_back(std::move(event));
}

std::shared_ptr<const HookEvent> HookQueue::begin() {
  sending_ = true;
  return events_.front();
}

void HookQueue::end(HookVerdict verdict, std::chrono::seconds retry_after, Clock::time_point now) {
  sending_ = false;
  if (verdict == HookVerdict::kRetry) {
    ++counts_.retries;
    const std::chrono::milliseconds wait = std::max<std::chrono::milliseconds>(
        backoff_.next(), std::min<std::chrono::milliseconds>(retry_after, retry_.max));
    due_ = now + wait;
    return;
  }
  ++(verdict == HookVerdict::kDelivered ? counts_.delivered : counts_.failed);
  events_.pop_front();
  forget_failures();
}

void HookQueue::forget_failures() {
  backoff_ = Backoff(retry_);
  due_ = {};
}

std::size_t HookQueue::drop_all() {
  const std::size_t dropped = events_.size();
  counts_.dropped += dropped;
  events_.clear();
  return dropped;
}

HookCounts HookQueue::counts() const {
  HookCounts counts = counts_;
  counts.queued = events_.size();
  return counts;
}

}  // namespace framelane
