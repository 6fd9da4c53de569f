#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/device_set.hpp"
#include "daemon/feed_view.hpp"
#include "daemon/supervised_feed.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/output/retention.hpp"

namespace framelane {

/// What another configuration changes; names of feeds, in its order.
struct FeedChanges {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;
  std::vector<std::string> unchanged;
};

/// Owns the feeds: starts them, restarts what failed with backoff, replaces what another
/// configuration changes, stops them in order. One thread of its own. Every public function may be
/// called from any thread and returns at once, unless it says otherwise.
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
    /// What gets what the feeds do; null: nothing.
    std::shared_ptr<FlightRecorder> recorder{};
    /// Is told of the recordings that are complete.
    OnCompletedFile on_file{};
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
  /// Null: none.
  const std::shared_ptr<FlightRecorder>& recorder() const { return options_.recorder; }
  /// Ends the feed's run and starts a new one, also after a failure or an end. False if no feed has
  /// that name.
  bool restart(std::string_view feed);
  /// From now on there are these feeds, each with `reread`. A feed that is as before goes on
  /// untouched, unless it has failed. One that differs takes the new options while it runs
  /// (Feed::change), or ends its run, and the next has them. One that is gone completes what it
  /// has; only then are new ones started, since what it held may be what they need: a camera, a
  /// file, a session of an encoder. Blocks until the supervisor's thread has begun with it, which
  /// may first have to start a feed. Nothing if a stop has been requested. One at a time.
  std::optional<FeedChanges> reload(std::vector<FeedOptions> feeds, RereadOptions reread);

 private:
  using Feeds = std::vector<std::shared_ptr<SupervisedFeed>>;
  struct Reload {
    std::vector<FeedOptions> feeds;
    RereadOptions reread;
    bool taken = false;
    std::optional<FeedChanges> changes{};  // empty: not begun yet
  };

  std::shared_ptr<SupervisedFeed> make_feed(FeedOptions options, RereadOptions reread);
  Feeds present() const;
  void run();
  void take_reload();
  void start_added();
  bool turn();
  void trim_heap();
  void stop_feeds();
  bool stopping() const;
  void beat();
  void wake();

  const std::shared_ptr<DeviceSet> devices_;
  const Options options_;
  const std::shared_ptr<Retention> retention_ = std::make_shared<Retention>();
  // Of the supervisor's thread.
  Clock::time_point trim_due_;
  Feeds added_;    // not started yet
  Feeds leaving_;  // no longer among feeds_

  mutable std::mutex mutex_;  // guards all that follows
  Feeds feeds_;               // only the supervisor's thread changes them
  Reload* reload_ = nullptr;  // the one that is under way
  std::condition_variable changed_;
  std::condition_variable done_changed_;
  std::condition_variable reload_taken_;
  bool stop_ = false;
  bool woken_ = false;
  bool ready_ = false;
  bool done_ = false;
  std::atomic<Clock::rep> heartbeat_{0};
  std::thread thread_;
};

}  // namespace framelane
