#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/base/failure.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {

class FeedRun;

/// One run of a feed: a source, its ring and stage, its encodes and outputs, and their threads,
/// from start to end. Restarting a feed makes a new object over the same FeedStats.
///
/// Every thread shares the ownership of what it touches: a thread that is stuck in a call can be
/// abandoned and the rest goes on without it.
class Feed {
 public:
  struct Outcome {
    enum class Kind { kEnded, kStopped, kFailed } kind = Kind::kEnded;
    FeedFault fault = FeedFault::kInternal;  ///< kFailed
    std::string reason;                      ///< kFailed
  };

  /// Starts the threads. `on_done` is called once, on one of them, when the last has finished its
  /// work; it must not destroy the feed, nor wait for somebody who does. Throws FeedError or
  /// std::system_error when the parts or threads cannot be made.
  static std::unique_ptr<Feed> start(FeedOptions options, std::shared_ptr<FeedStats> stats,
                                     std::shared_ptr<Device> device, std::function<void()> on_done);
  /// Cancels, waits for what a cancel needs (1.5 s from the first one), abandons what still runs.
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Stops reading; frames in hand are encoded, encoders flushed, files completed. Returns at once.
  void drain();
  /// Stops everything that still waits or works; what has not been delivered is dropped with this
  /// reason. Returns at once.
  void cancel(DropReason reason);
  /// Nothing while threads run. To be asked now and then, since that is also how a source, a GPU or
  /// an output in a call that has ignored its deadline for 5 s is noticed: the feed is then
  /// cancelled.
  /// One that was cancelled, and of which a thread is stuck 1.5 s later, has failed: destroying it
  /// abandons that thread.
  std::optional<Outcome> outcome();
  /// Waits for the threads; false when some still run at the deadline.
  bool join_until(std::chrono::steady_clock::time_point deadline);

 private:
  explicit Feed(std::shared_ptr<FeedRun> run) : run_(std::move(run)) {}
  std::shared_ptr<FeedRun> run_;
};

/// Threads given up because they were stuck in a call that ignored its deadline, in this process.
std::uint64_t threads_abandoned();

}  // namespace framelane
