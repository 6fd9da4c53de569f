#include "daemon/hook.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {

Hook::Hook(HookConfig config, const BackoffOptions& retry)
    : name_(config.name), config_(std::move(config)), queue_(retry) {
  thread_ = std::thread([this] { run(); });
}

Hook::~Hook() {
  finish(Clock::now());
  wait_finished();
}

HookConfig Hook::config() const {
  const std::lock_guard lock(mutex_);
  return config_;
}

void Hook::change(HookConfig config) {
  const std::lock_guard lock(mutex_);
  if (config == config_) return;
  config_ = std::move(config);
  queue_.forget_failures();
  changed_.notify_all();
}

void Hook::push(std::shared_ptr<const HookEvent> event) {
  const std::lock_guard lock(mutex_);
  queue_.push(std::move(event));
  changed_.notify_all();
}

HookCounts Hook::counts() const {
  const std::lock_guard lock(mutex_);
  return queue_.counts();
}

void Hook::finish(Clock::time_point until) {
  const std::lock_guard lock(mutex_);
  if (until_) return;
  until_ = until;
  changed_.notify_all();
}

void Hook::wait_finished() {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, *until_, [this] { return ended_; });
  }
  client_.interrupt();
  thread_.join();
  const std::lock_guard lock(mutex_);
  if (const std::size_t dropped = queue_.drop_all(); dropped > 0) {
    log::warn("hook {}: ends, and {} {} dropped that could not be delivered", name_, dropped,
              dropped == 1 ? "event is" : "events are");
  }
}

void Hook::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto now = Clock::now();
    if (until_ && (queue_.empty() || gives_up_ || now >= *until_)) break;
    if (queue_.empty()) {
      changed_.wait(lock);
    } else if (!until_ && now < queue_.due()) {
      changed_.wait_until(lock, queue_.due());
    } else {
      deliver_first(lock);
    }
  }
  ended_ = true;
  changed_.notify_all();
}

void Hook::deliver_first(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<const HookEvent> event = queue_.begin();
  const HookConfig config = config_;
  lock.unlock();
  HttpAnswer answer;
  try {
    answer = client_.ask(hook_call(config, *event, std::chrono::system_clock::now()));
  } catch (const std::exception& error) {  // memory is short
    answer.problem = error.what();
  }
  const HookVerdict verdict = verdict_of(answer);
  lock.lock();
  queue_.end(verdict, answer.retry_after, Clock::now());
  if (config != config_) queue_.forget_failures();  // they were those of another receiver
  gives_up_ = until_ && verdict == HookVerdict::kRetry;
  const bool is_over = gives_up_;  // wait_finished() tells what is lost
  lock.unlock();
  if (!is_over) report(verdict, answer);
  lock.lock();
}

/// Logs that deliveries begin to fail, in each of the two ways, and that they succeed again.
void Hook::report(HookVerdict verdict, const HttpAnswer& answer) {
  const std::uint64_t dropped = counts().dropped;
  if (verdict == HookVerdict::kDelivered) {
    if (std::exchange(failing_, {}).empty()) return;
    const std::uint64_t lost = dropped - dropped_at_failure_;
    if (lost == 0) return log::info("hook {}: delivers again", name_);
    return log::warn(
        "hook {}: delivers again; {} events were dropped, because no more than {} may "
        "wait",
        name_, lost, HookQueue::kMost);
  }
  if (failing_.empty()) dropped_at_failure_ = dropped;
  if (!failing_.insert(verdict).second) return;
  log::warn("hook {}: {}; {}", name_, redact(why_not_delivered(answer)),
            verdict == HookVerdict::kRetry
                ? "events wait, and are tried again until it takes them"
                : "what it refuses is given up, since another try would not help");
}

}  // namespace framelane
