#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/encode/encode.hpp"
#include "pipeline/feed/branch.hpp"
#include "pipeline/feed/feed.hpp"
#include "pipeline/feed/ingest.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/output/output.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane {

/// The parts and threads of one run of a feed. Shared by its threads, so that it lives as long as
/// any of them, abandoned ones included.
class FeedRun : public std::enable_shared_from_this<FeedRun> {
 public:
  FeedRun(FeedOptions options, std::shared_ptr<FeedStats> stats, std::shared_ptr<Device> device,
          std::function<void()> on_done);

  const std::string& name() const { return options_.name; }
  void start();
  void drain();
  void cancel(DropReason reason);
  std::optional<Feed::Outcome> outcome();
  bool join_until(std::chrono::steady_clock::time_point deadline);
  /// Waits for what a cancel leaves the threads.
  bool join_cancelled();
  /// Lets go of the threads that still run; returns how many.
  int abandon();

 private:
  void make_parts();
  void settle();
  void free_parts();
  void spawn(const std::string& name, std::function<void()> body);
  void source_thread();
  void encode_thread(Branch& branch, Encode& encode);
  bool stuck() const;
  void watch_calls();
  void fail(FeedFault fault, const std::string& reason);

  const FeedOptions options_;
  const std::shared_ptr<FeedStats> stats_;
  const std::shared_ptr<Device> device_;
  std::function<void()> on_done_;  // guarded by mutex_

  std::stop_source read_stop_;  // drain: no more reading
  std::stop_source cancel_;     // nothing goes on
  Interrupt source_calls_{read_stop_.get_token()};
  /// Of the source's thread in the stage and for its memory, then of the one that frees the parts.
  Interrupt stage_calls_{read_stop_.get_token()};
  std::atomic<DropReason> cancel_reason_{DropReason::kStop};
  /// After a cancel an output may still take a second for its trailer; then a thread is stuck.
  static constexpr std::chrono::milliseconds kCancelTime{1500};
  /// A call that ignores its deadline for so long will not come back by itself.
  static constexpr std::chrono::seconds kIgnoredDeadline{5};

  // In the order of reference: what refers to a thing is declared after it and goes before it. The
  // supervisor's thread asks the outputs and closes the ring; the rest is the feed's threads' own.
  std::vector<std::unique_ptr<Output>> outputs_;
  std::vector<Branch> branches_;
  std::unique_ptr<FrameRing> ring_;
  std::unique_ptr<Stage> stage_;  // before the ring: its destructor waits for jobs in the ring
  std::vector<std::unique_ptr<Encode>> encodes_;
  std::unique_ptr<Ingest> ingest_;

  struct Thread {
    std::thread thread;
    bool finished = false;
  };
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<Feed::Outcome> outcome_;  // the first failure, or how the threads ended
  std::optional<std::chrono::steady_clock::time_point> cancelled_at_;
  /// Since when a call was seen to be overdue: of the source, of the stage, and of each output.
  using OverdueSince = std::optional<std::chrono::steady_clock::time_point>;
  OverdueSince source_overdue_since_;
  OverdueSince stage_overdue_since_;
  std::vector<OverdueSince> outputs_overdue_since_;
  static bool is_stuck(bool overdue, OverdueSince& since);
  std::size_t running_ = 0;             // threads that have not finished
  std::atomic<std::size_t> bodies_{0};  // of them, those that still need the parts
  bool stopped_ = false;
  bool abandoned_ = false;
  std::vector<Thread> threads_;
};

}  // namespace framelane
