// One feed's way through the stage, as in the daemon but without a decoder and an encoder. The
// suite `stage`, `framelane tune` and the programs nvdec_bench and timing_bench measure it.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/pictures.hpp"
#include "bench/harness/turns.hpp"
#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane::bench {

inline constexpr int kLanes = 3;  // the defaults of the configuration
inline constexpr int kRing = 8;

/// CPU seconds of the calling thread so far.
double thread_cpu_seconds();

/// How a feed's stage is set up.
struct StageShape {
  int lanes = kLanes;
  int ring = kRing;
  std::optional<int> slices = {};  ///< nothing: auto
};

/// What a feed did in one run.
struct FeedRun {
  int frames = 0;
  double cpu = 0;                               ///< seconds, of the feed's own threads
  std::vector<Clock::time_point> back = {};     ///< when each frame came back; in order
  std::vector<Clock::duration> latencies = {};  ///< of each: from being submitted to being back
  std::string problem = {};                     ///< empty: none
};

/// One feed's ring, stage and ledger, and the threads that use them: one submits frames, as the
/// source does, and one for each encode waits for them. One thread at a time calls it.
class StageFeed {
 public:
  StageFeed(Device& device, const StageShape& shape, std::size_t encodes = 1);

  FeedStats& stats() { return *stats_; }
  const FeedStats& stats() const { return *stats_; }
  Stage& stage() { return *stage_; }

  /// For all frames from now on: what is made of each, for one encode after the other. Requires as
  /// many conversions and targets as there are encodes; all conversions have one source, and none
  /// is_bypass. Results go to `targets`, which must outlive this; pictures of another size are from
  /// another pool, because a pool's buffers are of one size. `analyse`: the luma of the first
  /// result is counted.
  void prepare(std::span<const Conversion> conversions, FrameMemory memory,
               std::span<FramePool> targets, bool analyse = false);
  /// What became of one frame.
  struct FrameResult {
    int number;                       ///< the frame's place in its run, from 0
    std::vector<PooledImage> images;  ///< by encode
    LumaHistogram luma;               ///< of the first, if it is counted
  };
  /// From now on last_results() holds up to `count` results, for the caller to check.
  void hold_last_results(int count) { held_results_ = static_cast<std::size_t>(count); }
  /// Oldest first; empty unless hold_last_results was called.
  const std::deque<FrameResult>& last_results() const { return last_results_; }

  /// From now on a run ends early when `*stop` is not 0. `stop` must outlive this; null: no run
  /// ends early.
  void end_on(const std::atomic<int>* stop) { stop_ = stop; }

  /// Submits what `next` (called with 0, 1, …) gives until `until`, but always one frame more than
  /// there are lanes; returns when all are back. A feed that had a problem runs no more. Throws
  /// std::runtime_error where no thread can be started.
  FeedRun run(Clock::time_point until, const std::function<InputFrame(int)>& next);

 private:
  /// What one encode's thread does, until the run's last frame or until the ring is closed. Returns
  /// the thread's CPU seconds. `run` is null but for one encode.
  double encode(std::size_t index, FeedRun* run);
  void submit(InputFrame&& frame, int number, bool last);
  /// Waits for a job, and closes its ticket of one encode. Returns what went wrong, or nothing.
  std::string finish(FrameJob& job, std::size_t encode);
  void keep(const FrameJob& job);

  const StageShape shape_;
  const std::shared_ptr<FeedStats> stats_;
  FrameRing ring_;
  const std::unique_ptr<Stage> stage_;
  std::vector<Conversion> conversions_;
  std::vector<std::shared_ptr<FeedStats::EncodeLine>> lines_;  // of the ledger, by encode
  std::vector<FrameTicket> tickets_;                           // of the frame in hand, by encode
  PlanRef plan_;
  std::span<FramePool> targets_;
  bool analyse_ = false;
  std::size_t held_results_ = 0;
  const std::atomic<int>* stop_ = nullptr;
  std::deque<FrameResult> last_results_;
};

/// A feed whose frames are there already: pictures in host memory, used round and round.
class BenchFeed {
 public:
  /// With frames and targets of its own, for one conversion.
  BenchFeed(Device& device, const Conversion& convert, const StageShape& shape);
  /// `frames` and `targets` must outlive this; see StageFeed::prepare.
  BenchFeed(Device& device, std::span<const Conversion> conversions, const StageShape& shape,
            std::span<const PooledImage> frames, std::span<FramePool> targets,
            bool analyse = false);

  /// Submits frames until `until`; returns when all are back.
  FeedRun run(Clock::time_point until);

  const FeedStats& stats() const { return feed_.stats(); }
  StageFeed& feed() { return feed_; }

 private:
  InputFrame frame(int number) const;

  FramePool sources_;
  FramePool own_targets_;
  const std::vector<PooledImage> own_frames_;
  const std::span<const PooledImage> frames_;
  StageFeed feed_;
};

struct StageFigures {
  double frames_per_second;
  double cpu_per_1000_frames;  ///< seconds, of the whole process
  double own_per_1000_frames;  ///< of our threads alone: the driver and CUDA have some as well
  /// While all feeds are at work: from the moment when each has had a frame back until they stop
  /// submitting. Equals frames_per_second where too few frames come back in that time.
  double steady_frames_per_second = 0;
  std::vector<double> latencies = {};  ///< seconds; of all feeds' frames
};

/// Frames a second that came back between the moment when each feed has had one and `until`. 0
/// where they are too few: frames come back in groups, and one group more or less would count too
/// much.
double steady_rate(const std::vector<FeedRun>& runs, Clock::time_point until);

/// What one feed does until the given time.
using FeedWork = std::function<FeedRun(Clock::time_point until)>;
/// Lets all feeds work at once, each on a thread of its own. Throws the first feed's problem, or
/// std::runtime_error where no thread can be started.
StageFigures run_feeds(const std::vector<FeedWork>& feeds, double seconds);
StageFigures run_feeds(const std::vector<std::unique_ptr<BenchFeed>>& feeds, double seconds);

}  // namespace framelane::bench
