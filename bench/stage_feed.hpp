// One feed's way through the stage, as in the daemon but without decoder and encoder: what the
// benchmarks of the stage measure.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/device.hpp"
#include "pipeline/frame_ring.hpp"
#include "pipeline/stage.hpp"

namespace framelane::bench {

using Clock = std::chrono::steady_clock;

struct Size {
  const char* name;
  int width;
  int height;
};
inline constexpr Size k8K{"8K", 7680, 4320};
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

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
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

/// What a feed did in one go.
struct FeedRun {
  int frames;
  double cpu;  ///< seconds, of the feed's own threads
};

/// One feed: a thread that submits, as the source does, and one that waits, as an encode does.
class BenchFeed {
 public:
  BenchFeed(Device& device, const Conversion& convert, std::optional<int> slices,
            int lanes = kLanes)
      : convert_(convert),
        stats_(std::make_shared<FeedStats>("bench",
                                           std::vector<FeedStats::EncodeSpec>{{"live", false}},
                                           std::vector<std::string>{}, lanes)),
        frames_(
            make_frames(sources_, convert.source, {"", convert.width, convert.height}, kRing + 4)),
        ring_(kRing, 1, *stats_),
        stage_(device.make_stage(*stats_, slices)),
        plan_(stage_->prepare({&convert_, 1})) {}

  /// Submits frames until `until`; returns once all are back.
  FeedRun run(Clock::time_point until) {
    const double cpu_before = thread_cpu_seconds();
    int submitted = 0;
    double encode_cpu = 0;
    std::thread encode([this, &encode_cpu] {
      // The last job ends the round.
      for (bool last = false; !last;) {
        auto job = ring_.next(0);
        finish(**job);
        last = (*job)->input.duration == kLast;
      }
      encode_cpu = thread_cpu_seconds();
    });
    for (bool last = false; !last; ++submitted) {
      last = Clock::now() >= until;
      submit(submitted, last);
    }
    encode.join();
    return {submitted, thread_cpu_seconds() - cpu_before + encode_cpu};
  }

  /// From submitting a frame to having it back, nothing else going on, on one thread.
  double latency() {
    const Clock::time_point start = Clock::now();
    submit(0, true);
    auto job = ring_.next(0);
    finish(**job);
    return seconds_since(start);
  }

  const FeedStats& stats() const { return *stats_; }

 private:
  static constexpr std::int64_t kLast = 1;

  void submit(int number, bool last) {
    auto place = ring_.acquire({});
    std::array<FrameTicket, 1> tickets;
    open_tickets(stats_, tickets);
    FrameJob& job = **place;
    const PooledImage& frame = frames_[static_cast<std::size_t>(number) % frames_.size()];
    job.plan = plan_;
    job.input.image = as_const(frame.image);
    job.input.buffer = frame.buffer;
    job.input.duration = last ? kLast : 0;
    job.outputs[0].target =
        allocate_image(targets_, convert_.target, convert_.width, convert_.height);
    job.outputs[0].ticket = std::move(tickets[0]);
    place->publish();
    stage_->submit(job);
  }
  void finish(FrameJob& job) {
    if (stage_->wait(job, {}, Clock::now() + std::chrono::seconds(10)) != Stage::Wait::kReady) {
      std::fprintf(stderr, "a job is late\n");
      std::abort();
    }
    job.outputs[0].ticket.out();
  }

  const Conversion convert_;
  const std::shared_ptr<FeedStats> stats_;
  FramePool sources_;
  FramePool targets_;
  const std::vector<PooledImage> frames_;
  FrameRing ring_;
  const std::unique_ptr<Stage> stage_;
  const PlanRef plan_;
};

struct StageFigures {
  double frames_per_second;
  double cpu_per_1000_frames;  ///< seconds, of the whole process
  double own_per_1000_frames;  ///< of our threads alone: the driver and CUDA have some as well
};

/// All feeds side by side: `work(feed, until)` gives a FeedRun.
template <typename Feed, typename Work>
StageFigures run_feeds(std::vector<std::unique_ptr<Feed>>& feeds, double seconds, Work work) {
  const double cpu = cpu_seconds();
  double own = -completion_cpu_seconds();
  const Clock::time_point start = Clock::now();
  const auto until =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<FeedRun> runs(feeds.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    threads.emplace_back([&, i] { runs[i] = std::invoke(work, *feeds[i], until); });
  }
  for (std::thread& thread : threads) thread.join();
  const double time = seconds_since(start);
  own += completion_cpu_seconds();
  double frames = 0;
  for (const FeedRun& run : runs) {
    frames += run.frames;
    own += run.cpu;
  }
  return {frames / time, (cpu_seconds() - cpu) / frames * 1000, own / frames * 1000};
}

inline StageFigures run_feeds(std::vector<std::unique_ptr<BenchFeed>>& feeds, double seconds) {
  return run_feeds(feeds, seconds, &BenchFeed::run);
}

}  // namespace framelane::bench
