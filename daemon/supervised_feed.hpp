#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/device_set.hpp"
#include "daemon/feed_view.hpp"
#include "daemon/options_reread.hpp"
#include "daemon/stop_loss.hpp"
#include "pipeline/base/backoff.hpp"
#include "pipeline/base/failure.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/output/retention.hpp"

namespace framelane {

/// steady_clock::now, or the clock of a test. It is read for decisions (backoff, deadlines, the
/// heartbeat's age). Waits, and a run's own watch (Feed::outcome), always use steady_clock. Any
/// thread.
using Now = std::function<std::chrono::steady_clock::time_point()>;

/// One feed of the supervisor: its current run, and when the next one starts. All its runs count
/// into the same FeedStats.
///
/// view(), has_failed() and request_restart() may be called from any thread and return at once;
/// everything else is for the supervisor's thread.
class SupervisedFeed {
 public:
  using Clock = std::chrono::steady_clock;
  /// How long a feed that is stopped or restarted may take to complete what it has in hand. It is
  /// then cancelled, which leaves its outputs a second to write what they have. All of this fits
  /// into the 10 s after which container runtimes kill.
  static constexpr std::chrono::milliseconds kDrainTime = FeedDeadlines{}.drain;
  /// A thread that is stuck in a call (of a server that hangs, say) keeps its memory and
  /// connections, and the next run would probably get stuck like the last. A feed that has this
  /// many stuck runs is not started until one of them ends.
  static constexpr int kMaxAbandonedRuns = 3;

  /// Nothing runs before start(). `wake` is called from any thread when a run has ended, so that
  /// turn() is called soon. With `options.once`, a feed that has ended or failed stays so. Every
  /// run but the first has the options that `reread` returns in time; else those of the run before.
  /// For `retention` see Feed, for `recorder` and `on_file` FeedStats.
  SupervisedFeed(FeedOptions options, std::shared_ptr<DeviceSet> devices, Now now,
                 std::function<void()> wake, FeedDeadlines deadlines = {},
                 RereadOptions reread = {}, std::shared_ptr<Retention> retention = nullptr,
                 std::shared_ptr<FlightRecorder> recorder = nullptr, OnCompletedFile on_file = {});

  const std::string& name() const { return stats_->feed(); }
  FeedView view() const {
    const std::lock_guard lock(mutex_);
    return {options_, stats_, tap_, devices_->named(stats_->status().device)};
  }
  /// True if the last run failed and no other run follows.
  bool has_failed() const { return failed_; }
  /// The next turn() ends the current run, if there is one, and a new run follows.
  void request_restart() { restart_requested_ = true; }

  /// Starts a run. Blocks while its parts are made, and while drivers are
  /// asked which GPU has room. A failure to start is
  /// handled like the failure of a run.
  void start();
  /// From now on the feed has these options, and `reread` belongs to them. If they differ from
  /// those that it has, or if it has failed, its run goes on with them (Feed::change), or ends and
  /// another one follows, which has them. One that has ended stays so, unless it is to read
  /// something else: its next run, if one is requested, has them. True if so.
  bool reload(FeedOptions options, RereadOptions reread);
  /// The feed is no longer wanted: lets its run complete what it has in hand. No run follows. To be
  /// looked after with turn() until that returns false. Returns at once.
  void leave();
  /// Looks after the feed once: a requested restart, a GPU that is lost, the end of a run, the
  /// start of the next.
  /// Returns true if a run exists or will be started.
  bool turn();

  // The end, in this order. No run is started any more.
  /// Lets the run complete what it has in hand. Returns at once.
  void drain();
  /// Waits for the run to end, `time` at most; false if it still runs.
  bool wait_for(Clock::duration time);
  /// Cancels a run that still has no outcome. Returns at once.
  void cancel();
  /// Waits for the outcome of the run and logs it; a cancelled run has one within
  /// FeedDeadlines::after_cancel.
  void finish();

 private:
  void restart(Clock::time_point now);
  void take_next_options();
  bool has_ended() const;
  bool reads_no_other_source() const;
  void stay_ended();
  bool has_failed_output() const;
  bool change_run(const FeedOptions& options);
  bool may_start();
  bool reread_options(Clock::time_point now);
  void leave_lost_gpu(Clock::time_point now);
  void on_outcome(const Feed::Outcome& outcome);
  void on_failure(FeedFault fault, const std::string& reason);
  void cancel_late_run();
  void warn_of_loss() const;

  // Guards the pointers options_ and tap_, which only the supervisor's thread changes.
  mutable std::mutex mutex_;
  std::shared_ptr<const FeedOptions> options_;
  const std::shared_ptr<FeedStats> stats_;
  const std::shared_ptr<DeviceSet> devices_;
  const Now now_;
  const std::function<void()> wake_;
  const FeedDeadlines deadlines_;
  const std::shared_ptr<Retention> retention_;
  std::shared_ptr<SnapshotTap> tap_ = std::make_shared<SnapshotTap>();  // of the present run
  std::atomic<bool> failed_{false};
  std::atomic<bool> restart_requested_{false};

  // Of the supervisor's thread.
  StopLoss loss_before_run_;
  Backoff backoff_;
  std::optional<OptionsReread> reread_;
  std::shared_ptr<const FeedOptions> next_options_;  // of the next run, after a reload; may be null
  std::unique_ptr<Feed> run_;
  bool stopping_ = false;
  bool place_anew_ = false;                       // the last run failed for want of memory
  bool too_many_abandoned_ = false;               // logged once, see may_start()
  bool reloads_ = false;                          // a reload is why the run ends
  bool late_ = false;                             // the drain took too long, the run was cancelled
  std::optional<Clock::time_point> start_at_;     // of the next run
  std::optional<Clock::time_point> drain_until_;  // of a run that is being restarted
};

}  // namespace framelane
