#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "pipeline/base/line_clock.hpp"
#include "pipeline/feed/feed_deadlines.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/measure/feed_stats.hpp"
#include "pipeline/output/output.hpp"
#include "pipeline/output/rendition_group.hpp"
#include "pipeline/output/retention.hpp"
#include "pipeline/packets/packet_fanout.hpp"

namespace framelane {

/// The outputs of one run of a feed, and how they change while it goes on. The threads that `spawn`
/// starts share the ownership of what holds this.
///
/// The supervisor's thread calls all functions but abandon(); none of them waits.
class FeedOutputs {
 public:
  using Clock = std::chrono::steady_clock;
  /// Starts a thread of the run. Throws FeedError.
  using Spawn = std::function<void(const std::string& name, std::function<void()> body)>;

  /// Where an encode's packets come from.
  struct Origin {
    std::shared_ptr<PacketFanout> fanout;
    bool idle = false;  ///< nobody publishes there yet
  };
  /// By the encode's name; those that are to go are left out.
  using Origins = std::map<std::string, Origin>;

  /// All of it outlives this.
  struct Parts {
    const std::string& feed;
    bool once;
    FeedStats& stats;
    const LineClock& line_clock;
    Retention* retention;  ///< may be null
    const FeedDeadlines& deadlines;
    std::stop_token cancel;
    std::stop_token drain;
  };
  FeedOutputs(Parts parts, Spawn spawn);

  /// Starts the threads. Until then change() starts none. `recover`: see FeedOptions.
  void start(bool recover);
  /// Makes the outputs those of `options`. The statistics have their shape already. An output that
  /// differs goes on with other settings if it can (Output::change); else another one comes in its
  /// place: at the next keyframe, or, if it gets the packets of another encode, at once. The old
  /// one ends first, since both may write the same files. One that is gone writes what it has. One
  /// of an encode that is gone gets that encode's last packets.
  void change(const FeedOptions& options, const Origins& origins);
  /// Lets go of the outputs that have left, and stops those that have not in time. To be called a
  /// few times a second.
  void forget_left();
  /// If a call of an output has ignored its deadline for FeedDeadlines::after_deadline: abandons
  /// the output, and says why; else empty.
  std::string find_stuck(Clock::time_point now);
  /// Drops what is queued. Any thread.
  void abandon();

 private:
  struct Part {
    OutputOptions options;  // as it is now
    std::shared_ptr<OutputStats> stats;
    std::shared_ptr<PacketFanout> fanout;
    std::unique_ptr<Output> output;
    std::optional<Clock::time_point> overdue_since{};
    bool attached = false;  // the encode's packets come to it
    bool ended = false;     // its thread needs it no more
    /// It is no longer wanted, or another one comes in its place. Since then it completes what it
    /// has, for FeedDeadlines::drain at most.
    std::optional<Clock::time_point> leaves_since{};
    /// Another one comes in its place at a keyframe, which it waits for until then.
    std::optional<Clock::time_point> keyframe_by{};
    /// Whose place it comes in; null once it has begun.
    std::shared_ptr<Part> follows{};
    std::uint64_t taken = 0;                // packets, when it was looked at last
    std::uint64_t lost_before_leaving = 0;  // packets
  };
  using PartRef = std::shared_ptr<Part>;
  class ThreadScope;

  // These require mutex_.
  PartRef make(const OutputOptions& output, std::shared_ptr<OutputStats> stats,
               const FeedOptions& options, const Origin& origin);
  PartRef find(const OutputOptions& output) const;
  static void begin_to_leave(Part& part);
  static bool waits_for_keyframe(Part& part, Clock::time_point now);
  void take_place(const PartRef& part, const PartRef& old, const Origins& origins);
  void remove(const PartRef& part, const Origins& origins);

  // For the threads. False: after a cancel.
  void run(Part& part, bool recovers);
  bool attach(Part& part, const PartRef& replaced);
  bool wait_for(const bool& done);
  bool wait_for_place(const Part& part);

  const Parts parts_;
  const Spawn spawn_;
  std::mutex mutex_;                                  // guards all that follows
  std::condition_variable_any changed_;               // an output is attached, or has ended
  std::map<std::string, RenditionGroup> renditions_;  // by the path of the master playlist
  std::list<PartRef> outputs_;
  bool started_ = false;
};

}  // namespace framelane
