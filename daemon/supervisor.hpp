#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/device_set.hpp"
#include "daemon/feed_view.hpp"
#include "daemon/supervised_feed.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/output/retention.hpp"

namespace framelane {

/// Owns the feeds: starts them, restarts what failed with backoff, stops them in order. One thread
/// of its own. Every public function may be called from any thread and returns at once, unless it
/// says otherwise.
class Supervisor {
 public:
  using Clock = std::chrono::steady_clock;
  /// A heartbeat older than this means that the loop does not turn any more.
  static constexpr std::chrono::seconds kMaxHeartbeatAge{5};
  /// How often freed memory is given back to the system.
  static constexpr std::chrono::minutes kTrimEvery{5};

  struct Options {
    /// Feeds that have ended or failed stay so, and the supervisor is done when none runs.
    bool once = false;
    /// See SupervisedFeed.
    RereadOptions reread{};
    /// For tests, which need not wait for backoff, drain time and heartbeat then.
    Now now = Clock::now;
  };
  Supervisor(std::vector<FeedOptions> feeds, std::shared_ptr<DeviceSet> devices, Options options);
  /// Stops and waits.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  void start();
  /// Drains all feeds at once. What is left after SupervisedFeed::kDrainTime is cancelled and
  /// counted.
  void request_stop();
  /// Waits until all feeds have ended (after request_stop, or with `once`), `timeout` at most;
  /// false if time ran out.
  bool wait_done(std::chrono::milliseconds timeout);
  /// After wait_done: false if a feed failed.
  bool all_succeeded() const;

  /// True from when every feed has been created until a stop is requested.
  bool ready() const;
  /// Time since the supervisor's loop last turned. It turns at least every 500 ms.
  Clock::duration heartbeat_age() const;
  /// In the order of the configuration.
  std::vector<FeedView> feeds() const;
  const DeviceSet& devices() const { return *devices_; }
  /// Ends the feed's run and starts a new one, also after a failure or an end. False if no feed has
  /// that name.
  bool restart(std::string_view feed);

 private:
  void run();
  bool turn();
  void trim_heap();
  void stop_feeds();
  bool stopping() const;
  void beat();
  void wake();

  const std::shared_ptr<DeviceSet> devices_;
  const Options options_;
  const std::shared_ptr<Retention> retention_ = std::make_shared<Retention>();
  std::deque<SupervisedFeed> feeds_;  // fixed once constructed
  Clock::time_point trim_due_;        // the loop's

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable done_changed_;
  bool stop_ = false;
  bool woken_ = false;
  bool ready_ = false;
  bool done_ = false;
  std::atomic<Clock::rep> heartbeat_{0};
  std::thread thread_;
};

}  // namespace framelane
