#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/feed/feed.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {

/// A feed as the API and the metrics see it. Valid as long as it is held.
struct FeedView {
  std::shared_ptr<const FeedOptions> options;
  std::shared_ptr<const FeedStats> stats;
};

/// Owns the feeds: starts them, restarts what failed with backoff, stops them in order. One thread
/// of its own; every public function may be called from any thread and returns at once unless it
/// says otherwise.
class Supervisor {
 public:
  /// After it a feed is cancelled, which leaves its outputs a second to write what they have: all
  /// of it in the 10 s after which container runtimes kill.
  static constexpr std::chrono::milliseconds kDrainTime{7500};
  /// A heartbeat older than this means that the loop does not turn any more.
  static constexpr std::chrono::seconds kMaxHeartbeatAge{5};

  struct Options {
    bool once = false;  ///< finished and failed feeds stay so; done() when none runs
  };
  Supervisor(std::vector<FeedOptions> feeds, std::shared_ptr<Device> device, Options options);
  /// Stops and waits.
  ~Supervisor();

  void start();
  /// Drains all feeds at once; after kDrainTime what is left is cancelled and counted.
  void request_stop();
  /// Waits until all feeds have ended (after request_stop, or with `once`) or `timeout` passes.
  bool wait_done(std::chrono::milliseconds timeout);
  /// After wait_done: false when a feed failed.
  bool all_succeeded() const;

  /// True from when every feed has been created until a stop is requested.
  bool ready() const;
  /// Time since the supervisor's loop last turned; it turns at least every 500 ms.
  std::chrono::steady_clock::duration heartbeat_age() const;
  /// In the order of the configuration.
  std::vector<FeedView> feeds() const;
  std::vector<std::shared_ptr<const Device>> devices() const;
  /// Ends the feed's run and starts a new one (also a failed or ended one); false when there is
  /// none of that name.
  bool restart(std::string_view feed);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace framelane
