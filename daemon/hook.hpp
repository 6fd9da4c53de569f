#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "config/process_config.hpp"
#include "daemon/hook_delivery.hpp"
#include "daemon/http_client.hpp"

namespace framelane {

/// Delivers events to one URL, in order, on a thread of its own: a receiver that is slow or dead
/// holds up nothing else. Any thread may call all functions; they return at once, unless they say
/// otherwise.
class Hook {
 public:
  using Clock = HookQueue::Clock;

  /// Throws std::system_error if no thread can be started.
  explicit Hook(HookConfig config, const BackoffOptions& retry = HookQueue::kRetry);
  /// Ends at once, and drops what waits.
  ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  HookConfig config() const;
  /// What waits is delivered by this configuration, of the same name.
  void change(HookConfig config);
  void push(std::shared_ptr<const HookEvent> event);
  HookCounts counts() const;

  /// The process ends: what waits is still delivered until then, as long as every try succeeds.
  void finish(Clock::time_point until);
  /// Waits until that is over. What is left has been dropped then, and a warning says so.
  void wait_finished();

 private:
  void run();
  void deliver_first(std::unique_lock<std::mutex>& lock);
  void report(HookVerdict verdict, const HttpAnswer& answer);

  const std::string name_;
  HttpClient client_;
  std::set<HookVerdict> failing_;         // how, as was logged; the thread's
  std::uint64_t dropped_at_failure_ = 0;  // when that began; the thread's
  mutable std::mutex mutex_;              // guards what follows
  std::condition_variable changed_;
  HookConfig config_;
  HookQueue queue_;
  std::optional<Clock::time_point> until_;  // see finish()
  bool gives_up_ = false;                   // a try after finish() has failed
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace framelane
