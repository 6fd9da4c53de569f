#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/base/failure.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/retention.hpp"
#include "pipeline/packets/snapshot_tap.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {

class FeedRun;

/// One run of a feed: a source, its ring and stage, its encodes and outputs, and their threads,
/// from start to end. A feed that is restarted is a new object over the same FeedStats.
///
/// The threads share the ownership of all that they use: one that is stuck in a call can be
/// abandoned, and the process goes on without it. All functions may be called from any thread, but
/// change() only from the one that calls outcome().
class Feed {
 public:
  using Clock = std::chrono::steady_clock;

  struct Outcome {
    enum class Kind { kEnded, kStopped, kFailed } kind = Kind::kEnded;
    FeedFault fault = FeedFault::kInternal;  ///< kFailed
    std::string reason;                      ///< kFailed
  };

  /// Starts the threads. The last of them calls `on_done` once, when its work is finished; that
  /// call must not destroy the feed, nor wait for a thread that does. Throws FeedError or
  /// std::system_error if the parts or threads cannot be made. Without `retention` the outputs
  /// delete nothing. `tap`: where pictures are left for snapshots; may be null.
  static std::unique_ptr<Feed> start(FeedOptions options, std::shared_ptr<FeedStats> stats,
                                     std::shared_ptr<Device> device, std::function<void()> on_done,
                                     FeedDeadlines deadlines = {},
                                     std::shared_ptr<Retention> retention = nullptr,
                                     std::shared_ptr<SnapshotTap> tap = nullptr);
  /// Cancels, waits for what a cancel takes (until FeedDeadlines::cancel after the first one), and
  /// abandons the threads that still run.
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Goes on with these options, which may differ as can_change_in_run says. An output that differs
  /// is replaced by another one at the next keyframe; one that is new begins with the present group
  /// of pictures; one that is gone writes what it has and ends. An encode that is new gets the
  /// frames that the source delivers from now on; one that is gone encodes those before; one that
  /// differs in more than what is drawn gets a new encoder. Masks and overlays are as the new
  /// options say on the frames from now on. All else goes on. The statistics have the new shape
  /// already (FeedStats::reshape). False if the run ends already. Returns at once. Called by the
  /// thread that calls outcome().
  bool change(std::shared_ptr<const FeedOptions> options);
  /// Stops reading. Frames in hand are encoded, encoders flushed, files completed. Returns at once.
  void drain();
  /// Stops all work and all waits. What has not been delivered is dropped with this reason. Returns
  /// at once.
  void cancel(DropReason reason);
  /// How the run ended; nothing while threads run.
  ///
  /// To be called several times a second, since this is also the watchdog. A call of the source, of
  /// the stage or of an output that has ignored its deadline for FeedDeadlines::ignored fails and
  /// cancels the feed. If a thread still runs FeedDeadlines::cancel after a cancel, the run counts
  /// as failed, and destroying the feed abandons that thread.
  std::optional<Outcome> outcome(Clock::time_point now = Clock::now());
  /// Waits for the threads; false if some still run at the deadline.
  bool join_until(Clock::time_point deadline);

 private:
  explicit Feed(std::shared_ptr<FeedRun> run) : run_(std::move(run)) {}
  std::shared_ptr<FeedRun> run_;
};

}  // namespace framelane
