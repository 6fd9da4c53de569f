#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/av/interrupt.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/base/labels.hpp"
#include "pipeline/base/line_clock.hpp"
#include "pipeline/encode/encode.hpp"
#include "pipeline/feed/encode_route.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/feed/frame_dispatch.hpp"
#include "pipeline/feed/packet_dispatch.hpp"
#include "pipeline/feed/source_loop.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/output.hpp"
#include "pipeline/output/rendition_group.hpp"
#include "pipeline/output/retention.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// The parts and threads of one run of a feed. The threads share its ownership, so that it lives as
/// long as any of them, abandoned ones included. The functions that Feed has too are described
/// there; all public ones may be called from any thread.
class FeedRun : public std::enable_shared_from_this<FeedRun> {
 public:
  using Clock = Feed::Clock;

  FeedRun(FeedOptions options, std::shared_ptr<FeedStats> stats, std::shared_ptr<Device> device,
          std::function<void()> on_done, FeedDeadlines deadlines,
          std::shared_ptr<Retention> retention);

  const std::string& name() const { return options_.name; }
  void start();
  bool change(const FeedOptions& options);
  void drain();
  void cancel(DropReason reason);
  std::optional<Feed::Outcome> outcome(Clock::time_point now);
  bool join_until(Clock::time_point deadline);
  /// After a cancel: waits for the threads, for as long as a cancel gives them.
  bool join_cancelled();
  /// Joins the threads that have finished and detaches the others; returns how many are detached.
  int abandon();

 private:
  /// Since when a call has been seen to be overdue; empty: it is not.
  using OverdueSince = std::optional<Clock::time_point>;
  struct Thread {
    std::thread thread;
    bool finished = false;
    AbandonableThread abandonable{};
  };
  struct OutputPart {
    std::shared_ptr<OutputStats> stats;
    std::unique_ptr<Output> output;
    OverdueSince overdue_since{};
    std::shared_ptr<Thread> thread{};
    bool attached = true;  // the encode's packets come to it
    /// It is no longer wanted, or another one comes in its place.
    std::optional<Clock::time_point> leaves_since{};
    std::uint64_t lost_before_leaving = 0;  // packets
  };

  void make_parts();
  OutputPart& make_output(const OutputOptions& output, std::shared_ptr<OutputStats> stats);
  void run_output(OutputPart& part, bool recovers);
  static void begin_to_leave(OutputPart& part);
  void change_parts(const FeedOptions& options);
  void add_output(OutputPart& part, OutputPart* predecessor);
  void remove_output(OutputPart& part);
  void attach(OutputPart& part, OutputPart* replaced);
  void wait_attached(const OutputPart& part);
  PacketFanout& fanout_of(const OutputPart& part);
  bool hold_parts();
  void release_parts();
  void forget_left_outputs();
  void make_route(const EncodeOptions& encode);
  void free_parts();
  std::shared_ptr<Thread> spawn(const std::string& name, std::function<void()> body);
  void source_thread();
  void encode_thread(EncodeRoute& route, Encode& encode);
  // The first outcome stays.
  void set_ended_if_unset();
  void set_failed_if_unset(FeedFault fault, std::string reason);
  /// Sets the outcome and cancels.
  void fail(FeedFault fault, std::string reason);
  /// Fails the feed if a call of the source, its sound, the stage, an encoder or an output has
  /// ignored its deadline.
  void watch_calls(Clock::time_point now);
  bool is_stuck(bool overdue, OverdueSince& since, Clock::time_point now) const;
  bool stuck_after_cancel(Clock::time_point now) const;

  const FeedOptions options_;
  const std::shared_ptr<FeedStats> stats_;
  const FeedStats::Ledger ledger_at_start_;  // keeps what the encodes count in
  const std::shared_ptr<Device> device_;
  std::function<void()> on_done_;  // guarded by mutex_
  const FeedDeadlines deadlines_;
  const std::shared_ptr<Retention> retention_;  // may be null

  std::stop_source read_stop_;  // a drain: nothing more is read
  std::stop_source cancel_;     // a cancel: nothing goes on
  Interrupt source_calls_{read_stop_.get_token()};
  /// One for each encode: times what transcodes its sound, on the source thread, and interrupts
  /// none of it.
  std::deque<Interrupt> audio_calls_;
  /// Calls that a GPU may hold up: the source thread's, into the stage and for memory, and at the
  /// end those of the thread that frees the parts.
  Interrupt stage_calls_{read_stop_.get_token()};
  std::atomic<DropReason> cancel_reason_{DropReason::kStop};

  // Each part is declared after those it refers to, and is destroyed before them. The supervisor's
  // thread asks the outputs and encodes and closes the ring; all else belongs to the feed's
  // threads.
  LineClock line_clock_;
  std::map<std::string, RenditionGroup> renditions_;  // by the path of the master playlist
  FeedOptions style_;  // what is masked and drawn now; of the thread that calls change()
  std::list<OutputPart> outputs_;  // once threads run: guarded by mutex_
  std::vector<EncodeRoute> routes_;
  std::unique_ptr<FrameRing> ring_;  // null, with the stage, if every encode copies
  std::unique_ptr<Stage> stage_;  // goes before the ring: its destructor waits for the ring's jobs
  std::vector<std::unique_ptr<Encode>> encodes_;  // one for each route; null for those that copy
  std::unique_ptr<PacketDispatch> packets_;
  std::unique_ptr<FrameDispatch> frames_;  // null if every encode copies
  std::unique_ptr<SourceLoop> source_loop_;

  mutable std::mutex mutex_;          // guards all that follows, except bodies_
  std::condition_variable finished_;  // a thread has, or an output is attached
  std::optional<Feed::Outcome> outcome_;
  std::optional<Clock::time_point> cancelled_at_;
  OverdueSince source_overdue_since_;
  std::vector<OverdueSince> audio_overdue_since_;
  OverdueSince stage_overdue_since_;
  std::vector<OverdueSince> encodes_overdue_since_;
  std::size_t running_ = 0;             // threads that have not finished
  std::atomic<std::size_t> bodies_{0};  // threads that still need the parts
  bool stopped_ = false;                // by drain or cancel
  bool abandoned_ = false;
  std::list<std::shared_ptr<Thread>> threads_;
};

}  // namespace framelane
