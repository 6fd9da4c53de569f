#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
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
#include "pipeline/feed/feed_outputs.hpp"
#include "pipeline/feed/frame_dispatch.hpp"
#include "pipeline/feed/packet_dispatch.hpp"
#include "pipeline/feed/run_changes.hpp"
#include "pipeline/feed/source_loop.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/measure/feed_stats.hpp"
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
  bool change(std::shared_ptr<const FeedOptions> options);
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
  struct EncodePart {
    std::shared_ptr<const EncodeOptions> options;  // at first; see route->options
    std::shared_ptr<EncodeStats> stats;
    Interrupt audio_calls{std::stop_token()};  // times what transcodes its sound, on the source
                                               // thread, and interrupts none of it
    std::unique_ptr<EncodeRoute> route;
    std::unique_ptr<Encode> encode;  // null if it copies
    OverdueSince overdue_since{};
    OverdueSince audio_overdue_since{};
    bool leaves = false;
    bool let_go = false;  // by the source thread
  };
  using EncodeRef = std::shared_ptr<EncodePart>;

  void make_parts();
  EncodeRef make_encode(const std::shared_ptr<const FeedOptions>& options, std::size_t index,
                        int consumer);
  FeedOutputs::Origins origins(const std::vector<EncodeRef>& idle) const;
  void start_encode(const EncodeRef& part);
  void change_parts(const std::shared_ptr<const FeedOptions>& options);
  bool hold_parts();
  void release_parts();
  void forget_left();
  void forget_left_encodes();
  void free_parts();
  void spawn(const std::string& name, std::function<void()> body);
  void source_thread();
  void encode_thread(EncodePart& part);
  // The first outcome stays.
  void set_ended_if_unset();
  void set_failed_if_unset(FeedFault fault, std::string reason);
  /// Sets the outcome and cancels.
  void fail(FeedFault fault, std::string reason);
  /// Fails the feed if a call of the source, its sound, the stage, an encoder or an output has
  /// ignored its deadline.
  void watch_calls(Clock::time_point now);
  bool stuck_after_cancel(Clock::time_point now) const;

  const FeedOptions options_;  // at first
  const std::shared_ptr<FeedStats> stats_;
  const std::shared_ptr<Device> device_;
  std::function<void()> on_done_;  // guarded by mutex_
  const FeedDeadlines deadlines_;
  const std::shared_ptr<Retention> retention_;  // may be null

  std::stop_source read_stop_;  // a drain: nothing more is read
  std::stop_source cancel_;     // a cancel: nothing goes on
  Interrupt source_calls_{read_stop_.get_token()};
  /// Calls that a GPU may hold up: the source thread's, into the stage and for memory, and at the
  /// end those of the thread that frees the parts.
  Interrupt stage_calls_{read_stop_.get_token()};
  std::atomic<DropReason> cancel_reason_{DropReason::kStop};

  // Each part is declared after those it refers to, and is destroyed before them. The supervisor's
  // thread asks and changes the outputs and encodes and closes the ring; all else belongs to the
  // feed's threads.
  LineClock line_clock_;
  RunChanges changes_;
  FeedOutputs outputs_;
  std::shared_ptr<const FeedOptions> present_;  // of the thread that calls change()
  std::unique_ptr<FrameRing> ring_;             // null, with the stage, if every encode copies
  std::unique_ptr<Stage> stage_;  // goes before the ring: its destructor waits for the ring's jobs
  // Of the thread that calls change(). Their routes are the source thread's, and go with the last
  // thread.
  std::list<EncodeRef> encodes_;
  std::unique_ptr<PacketDispatch> packets_;
  std::unique_ptr<FrameDispatch> frames_;  // null if every encode copies
  std::unique_ptr<SourceLoop> source_loop_;

  mutable std::mutex mutex_;          // guards all that follows, except bodies_
  std::condition_variable finished_;  // a thread has
  std::optional<Feed::Outcome> outcome_;
  std::optional<Clock::time_point> cancelled_at_;
  OverdueSince source_overdue_since_;
  OverdueSince stage_overdue_since_;
  std::size_t running_ = 0;             // threads that have not finished
  std::atomic<std::size_t> bodies_{0};  // threads that still need the parts
  bool stopped_ = false;                // by drain or cancel
  bool source_ended_ = false;           // by itself
  bool abandoned_ = false;
  std::list<std::shared_ptr<Thread>> threads_;
};

}  // namespace framelane
