// One feed's way through the stage, as in the daemon but without decoder and encoder: what the
// suite `stage` and the benchmarks of the stage measure.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/frames/frame_ring.hpp"
#include "pipeline/stage/device.hpp"
#include "pipeline/stage/stage.hpp"

namespace framelane::bench {

using Clock = std::chrono::steady_clock;

struct Size {
  const char* name;
  int width;
  int height;
};
inline constexpr Size k8K{"8K", 7680, 4320};
inline constexpr Size k4K{"4K", 3840, 2160};
inline constexpr Size k1080p{"1080p", 1920, 1080};
inline constexpr int kLanes = 3;  // the defaults of the configuration
inline constexpr int kRing = 8;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// CPU seconds of the calling thread so far.
inline double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Those of the thread that sees jobs end, which all feeds share.
inline double completion_cpu_seconds() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    double nanoseconds = 0;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "cuda-complete") continue;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    return nanoseconds * 1e-9;
  }
  return 0;
}

inline Conversion conversion(PixelFormat source, PixelFormat target, const Size& size) {
  Conversion result;
  result.width = size.width;
  result.height = size.height;
  result.source = source;
  result.target = target;
  if (info(source).rgb) {
    result.source_color = {.matrix = Matrix::kRgb, .range = Range::kFull};
  } else {
    result.source_color.range = Range::kFull;
  }
  return result;
}

inline std::size_t image_bytes(PixelFormat format, const Size& size) {
  std::size_t bytes = 0;
  for (int plane = 0; plane < info(format).plane_count; ++plane) {
    bytes += plane_row_bytes(format, plane, size.width) *
             static_cast<std::size_t>(plane_rows(format, plane, size.height));
  }
  return bytes;
}

/// Random frames to go round, more than any cache holds.
inline std::vector<PooledImage> make_frames(FramePool& pool, PixelFormat format, const Size& size,
                                            int count) {
  std::mt19937_64 random(1);
  std::vector<PooledImage> frames;
  for (int i = 0; i < count; ++i) {
    frames.push_back(allocate_image(pool, format, size.width, size.height));
    AVBufferRef& buffer = *frames.back().buffer.get();
    for (std::size_t at = 0; at + 8 <= buffer.size; at += 8) {
      const std::uint64_t value = random();
      std::memcpy(buffer.data + at, &value, sizeof value);
    }
  }
  return frames;
}

/// Throws std::runtime_error where the system has no thread for it.
template <typename Work>
std::jthread start_thread(Work work) {
  try {
    return std::jthread(std::move(work));
  } catch (const std::system_error& error) {
    throw std::runtime_error(std::string("a feed's thread cannot be started: ") + error.what());
  }
}

/// How a feed's stage is set up.
struct StageShape {
  int lanes = kLanes;
  int ring = kRing;
  std::optional<int> slices = {};
};

/// What a feed did in one go.
struct FeedRun {
  int frames = 0;
  double cpu = 0;                               ///< seconds, of the feed's own threads
  std::vector<Clock::time_point> back = {};     ///< when each frame was; in order
  std::vector<Clock::duration> latencies = {};  ///< of each: from being submitted to being back
  std::string problem = {};                     ///< empty: none
};

/// One feed's ring, stage and ledger, and the two threads that use them: one that submits, as the
/// source does, and one that waits, as an encode does.
class StageFeed {
 public:
  StageFeed(Device& device, const StageShape& shape)
      : shape_(shape),
        stats_(std::make_shared<FeedStats>("bench",
                                           std::vector<FeedStats::EncodeSpec>{{"live", false}},
                                           std::vector<std::string>{}, shape.lanes)),
        ring_(shape.ring, 1, *stats_),
        stage_(device.make_stage(*stats_, shape.slices)) {}

  FeedStats& stats() { return *stats_; }
  const FeedStats& stats() const { return *stats_; }
  Stage& stage() { return *stage_; }

  /// For all frames from now on. `targets`, which stays, is where results go. `analyse`: their luma
  /// is counted.
  void prepare(const Conversion& convert, FrameMemory memory, FramePool& targets,
               bool analyse = false) {
    convert_ = convert;
    targets_ = &targets;
    analyse_ = analyse;
    plan_ = stage_->prepare({&convert_, 1}, memory, analyse);
  }
  /// From now on so many of the last results of each run are kept.
  void keep(int count) { keep_ = static_cast<std::size_t>(count); }
  /// What was kept: the result of frame `number` of its run.
  struct Kept {
    int number;
    PooledImage image;
    LumaHistogram luma;  ///< where it is counted
  };
  const std::deque<Kept>& kept() const { return kept_; }
  void forget_kept() { kept_.clear(); }

  /// From now on a run ends early when `stop`, which stays, is not 0; null: none does.
  void end_on(const std::atomic<int>* stop) { stop_ = stop; }

  /// Submits what `next` (called with 0, 1, …) gives until `until`, and one frame more than there
  /// are lanes at least; returns once all are back. A feed that had a problem runs no more. Throws
  /// std::runtime_error where there is no thread for it.
  FeedRun run(Clock::time_point until, const std::function<InputFrame(int)>& next) {
    const double cpu_before = thread_cpu_seconds();
    FeedRun result;
    double encode_cpu = 0;
    std::jthread encode = start_thread([this, &result, &encode_cpu] {
      for (bool last = false; !last;) {
        auto job = ring_.next(0);
        if (!job) break;
        finish(**job, result);
        last = (*job)->input.duration == kLast;
      }
      encode_cpu = thread_cpu_seconds();
    });
    std::string failure;
    int submitted = 0;
    try {
      for (bool last = false; !last; ++submitted) {
        InputFrame frame = next(submitted);
        last = submitted >= shape_.lanes &&
               (Clock::now() >= until || (stop_ != nullptr && *stop_ != 0));
        submit(std::move(frame), submitted, last);
      }
    } catch (const std::exception& error) {
      failure = error.what();
      ring_.close();  // what was published is still waited for
    }
    encode.join();
    result.frames = submitted;
    result.cpu = thread_cpu_seconds() - cpu_before + encode_cpu;
    if (!failure.empty()) result.problem = failure;
    return result;
  }

 private:
  static constexpr std::int64_t kLast = 1;

  void submit(InputFrame&& frame, int number, bool last) {
    auto place = ring_.acquire({});
    if (!place) throw std::runtime_error("the feed has ended");
    FrameJob& job = **place;
    job.plan = plan_;
    job.input = std::move(frame);
    job.input.pts = number;
    job.input.duration = last ? kLast : 0;
    job.analyse = analyse_;
    job.outputs[0].target = allocate_image(*targets_, convert_.target, convert_.width,
                                           convert_.height, analyse_ ? sizeof(LumaHistogram) : 0);
    std::array<FrameTicket, 1> tickets;
    open_tickets(stats_, tickets);
    job.outputs[0].ticket = std::move(tickets[0]);
    job.input.decoded_at = Clock::now();
    place->publish();
    stage_->submit(job);
  }
  void finish(FrameJob& job, FeedRun& run) {
    // A job may not be let go before it is done: what is late is a problem, and waited for.
    for (;;) {
      const auto wait = stage_->wait(job, {}, Clock::now() + std::chrono::seconds(10));
      if (wait == Stage::Wait::kReady) break;
      if (wait == Stage::Wait::kDeviceLost) {
        run.problem = "a frame was lost with the GPU";
        return job.outputs[0].ticket.drop(DropReason::kDeviceLost);
      }
      run.problem = "a frame takes more than 10 s";
    }
    job.outputs[0].ticket.out();
    run.back.push_back(Clock::now());
    run.latencies.push_back(run.back.back() - job.input.decoded_at);
    if (keep_ == 0) return;
    if (kept_.size() == keep_) kept_.pop_front();
    kept_.push_back({static_cast<int>(job.input.pts), job.outputs[0].target, job.luma});
  }

  const StageShape shape_;
  const std::shared_ptr<FeedStats> stats_;
  FrameRing ring_;
  const std::unique_ptr<Stage> stage_;
  Conversion convert_;
  PlanRef plan_;
  FramePool* targets_ = nullptr;
  bool analyse_ = false;
  std::size_t keep_ = 0;
  const std::atomic<int>* stop_ = nullptr;
  std::deque<Kept> kept_;
};

/// A feed whose frames are there already: pictures in host memory, round and round.
class BenchFeed {
 public:
  /// With frames and targets of its own.
  BenchFeed(Device& device, const Conversion& convert, std::optional<int> slices,
            int lanes = kLanes)
      : own_frames_(
            make_frames(sources_, convert.source, {"", convert.width, convert.height}, kRing + 4)),
        frames_(own_frames_),
        feed_(device, {.lanes = lanes, .slices = slices}) {
    feed_.prepare(convert, FrameMemory::kHost, own_targets_);
  }
  /// `frames` and `targets` stay.
  BenchFeed(Device& device, const Conversion& convert, const StageShape& shape,
            std::span<const PooledImage> frames, FramePool& targets, bool analyse = false)
      : frames_(frames), feed_(device, shape) {
    feed_.prepare(convert, FrameMemory::kHost, targets, analyse);
  }

  /// Submits frames until `until`; returns once all are back.
  FeedRun run(Clock::time_point until) {
    return feed_.run(until, [this](int number) { return frame(number); });
  }

  const FeedStats& stats() const { return feed_.stats(); }
  StageFeed& feed() { return feed_; }

 private:
  InputFrame frame(int number) const {
    const PooledImage& image = frames_[static_cast<std::size_t>(number) % frames_.size()];
    InputFrame frame;
    frame.image = as_const(image.image);
    frame.buffer = image.buffer;
    return frame;
  }

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
  /// While all are at work: from when each has had a frame back to when they stop submitting. Where
  /// few frames are back in that time, or feeds do not say when, as frames_per_second.
  double steady_frames_per_second = 0;
  std::vector<double> latencies = {};  ///< seconds; of all feeds' frames
};

/// Frames a second back between the moment at which each feed has had one and `until`; 0 where that
/// are so few that those which come together count too much.
inline double steady_rate(const std::vector<FeedRun>& runs, Clock::time_point until) {
  constexpr int kEnough = 20;
  Clock::time_point first{};
  for (const FeedRun& run : runs) {
    if (run.back.empty()) return 0;
    first = std::max(first, run.back.front());
  }
  int frames = 0;
  Clock::time_point last = first;
  for (const FeedRun& run : runs) {
    for (const Clock::time_point back : run.back) {
      if (back <= first || back > until) continue;
      ++frames;
      last = std::max(last, back);
    }
  }
  if (frames < kEnough) return 0;
  return frames / std::chrono::duration<double>(last - first).count();
}

/// All feeds side by side: `work(feed, until)` gives a FeedRun. Throws the first feed's problem, or
/// std::runtime_error where there is no thread for one.
template <typename Feed, typename Work>
StageFigures run_feeds(std::span<const std::unique_ptr<Feed>> feeds, double seconds, Work work) {
  const double cpu = cpu_seconds();
  double own = -completion_cpu_seconds();
  const Clock::time_point start = Clock::now();
  const auto until =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<FeedRun> runs(feeds.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      threads.push_back(start_thread([&, i] {
        try {
          runs[i] = std::invoke(work, *feeds[i], until);
        } catch (const std::exception& error) {
          runs[i].problem = error.what();
        }
      }));
    }
  }
  const double time = seconds_since(start);
  own += completion_cpu_seconds();
  const double all_cpu = cpu_seconds() - cpu;
  double frames = 0;
  StageFigures result{};
  for (const FeedRun& run : runs) {
    if (!run.problem.empty()) throw std::runtime_error(run.problem);
    frames += run.frames;
    own += run.cpu;
    for (const Clock::duration latency : run.latencies) {
      result.latencies.push_back(std::chrono::duration<double>(latency).count());
    }
  }
  result.frames_per_second = frames / time;
  result.cpu_per_1000_frames = all_cpu / frames * 1000;
  result.own_per_1000_frames = own / frames * 1000;
  result.steady_frames_per_second = steady_rate(runs, until);
  if (result.steady_frames_per_second == 0) {
    result.steady_frames_per_second = result.frames_per_second;
  }
  return result;
}
template <typename Feed, typename Work>
StageFigures run_feeds(std::vector<std::unique_ptr<Feed>>& feeds, double seconds, Work work) {
  return run_feeds(std::span<const std::unique_ptr<Feed>>(feeds), seconds, work);
}
inline StageFigures run_feeds(std::vector<std::unique_ptr<BenchFeed>>& feeds, double seconds) {
  return run_feeds(feeds, seconds, &BenchFeed::run);
}

}  // namespace framelane::bench
