#include "bench/product/stage_feed.hpp"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace framelane::bench {
namespace {

// Marks the last frame of a run, in its duration.
constexpr std::int64_t kLast = 1;

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// CPU seconds of the thread that sees jobs end, which all feeds share.
double completion_cpu_seconds() {
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

std::vector<FeedStats::EncodeSpec> encode_specs(std::size_t count) {
  std::vector<FeedStats::EncodeSpec> specs;
  for (std::size_t i = 0; i < count; ++i) specs.push_back({std::to_string(i), false});
  return specs;
}

/// Throws std::runtime_error where the system cannot start another thread.
template <typename Work>
std::jthread start_thread(Work work) {
  try {
    return std::jthread(std::move(work));
  } catch (const std::system_error& error) {
    throw std::runtime_error(std::string("a feed's thread cannot be started: ") + error.what());
  }
}

}  // namespace

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

StageFeed::StageFeed(Device& device, const StageShape& shape, std::size_t encodes)
    : shape_(shape),
      stats_(std::make_shared<FeedStats>("bench", encode_specs(encodes), std::vector<std::string>{},
                                         shape.lanes)),
      ring_(shape.ring, static_cast<int>(encodes), *stats_),
      stage_(device.make_stage(*stats_, shape.slices)),
      tickets_(encodes) {
  for (const auto& encode : encode_specs(encodes)) lines_.push_back(stats_->line(encode.name));
}

void StageFeed::prepare(std::span<const Conversion> conversions, FrameMemory memory,
                        std::span<FramePool> targets, bool analyse) {
  assert(conversions.size() == tickets_.size() && targets.size() == tickets_.size());
  conversions_.assign(conversions.begin(), conversions.end());
  targets_ = targets;
  analyse_ = analyse;
  plan_ = stage_->prepare(conversions_, memory, analyse);
}

FeedRun StageFeed::run(Clock::time_point until, const std::function<InputFrame(int)>& next) {
  const double cpu_before = thread_cpu_seconds();
  FeedRun result;
  std::vector<double> encode_cpu(tickets_.size());
  std::vector<std::jthread> encodes;
  try {
    for (std::size_t i = 0; i < tickets_.size(); ++i) {
      encodes.push_back(start_thread([this, &result, &encode_cpu, i] {
        encode_cpu[i] = encode(i, i == 0 ? &result : nullptr);
      }));
    }
  } catch (...) {
    ring_.close();  // those that were started wait for frames
    throw;
  }
  std::string failure;
  int submitted = 0;
  try {
    for (bool last = false; !last; ++submitted) {
      InputFrame frame = next(submitted);
      last =
          submitted >= shape_.lanes && (Clock::now() >= until || (stop_ != nullptr && *stop_ != 0));
      submit(std::move(frame), submitted, last);
    }
  } catch (const std::exception& error) {
    failure = error.what();
    ring_.close();  // what was published is still waited for
  }
  encodes.clear();
  result.frames = submitted;
  result.cpu =
      std::accumulate(encode_cpu.begin(), encode_cpu.end(), thread_cpu_seconds() - cpu_before);
  if (!failure.empty()) result.problem = failure;
  return result;
}

double StageFeed::encode(std::size_t index, FeedRun* run) {
  for (bool last = false; !last;) {
    auto job = ring_.next(static_cast<int>(index));
    if (!job) break;
    std::string problem = finish(**job, index);
    last = (*job)->input.duration == kLast;
    if (run == nullptr) continue;
    if (!problem.empty()) run->problem = std::move(problem);
    if ((*job)->device_lost) continue;
    run->back.push_back(Clock::now());
    run->latencies.push_back(run->back.back() - (*job)->input.decoded_at);
    keep(**job);
  }
  return thread_cpu_seconds();
}

void StageFeed::submit(InputFrame&& frame, int number, bool last) {
  auto place = ring_.acquire({});
  if (!place) throw std::runtime_error("the feed has ended");
  FrameJob& job = **place;
  job.plan = plan_;
  job.input = std::move(frame);
  job.input.pts = number;
  job.input.duration = last ? kLast : 0;
  job.analyse = analyse_;
  for (std::size_t i = 0; i < conversions_.size(); ++i) {
    const auto [width, height] = conversions_[i].target_size();
    const bool counts = analyse_ && i == 0;
    job.outputs[i].target = allocate_image(targets_[i], conversions_[i].target, width, height,
                                           counts ? sizeof(LumaHistogram) : 0);
  }
  open_tickets(stats_, stats_->run(), lines_, tickets_);
  for (std::size_t i = 0; i < tickets_.size(); ++i) job.outputs[i].ticket = std::move(tickets_[i]);
  job.input.decoded_at = Clock::now();
  place->publish();
  stage_->submit(job);
}

std::string StageFeed::finish(FrameJob& job, std::size_t encode) {
  std::string problem;
  // A job must not be released before it is done. A late one is a problem, and still waited for.
  for (;;) {
    const auto wait = stage_->wait(job, {}, Clock::now() + std::chrono::seconds(10));
    if (wait == Stage::Wait::kReady) break;
    if (wait == Stage::Wait::kDeviceLost) {
      job.outputs[encode].ticket.drop(DropReason::kDeviceLost);
      return "a frame was lost with the GPU";
    }
    problem = "a frame takes more than 10 s";
  }
  job.outputs[encode].ticket.out();
  return problem;
}

void StageFeed::keep(const FrameJob& job) {
  if (held_results_ == 0) return;
  if (last_results_.size() == held_results_) last_results_.pop_front();
  FrameResult result{static_cast<int>(job.input.pts), {}, job.luma};
  for (const JobOutput& output : job.outputs) result.images.push_back(output.target);
  last_results_.push_back(std::move(result));
}

BenchFeed::BenchFeed(Device& device, const Conversion& convert, const StageShape& shape)
    : own_frames_(make_frames(sources_, convert.source, {"", convert.width, convert.height},
                              shape.ring + 4)),
      frames_(own_frames_),
      feed_(device, shape) {
  feed_.prepare({&convert, 1}, FrameMemory::kHost, {&own_targets_, 1});
}

BenchFeed::BenchFeed(Device& device, std::span<const Conversion> conversions,
                     const StageShape& shape, std::span<const PooledImage> frames,
                     std::span<FramePool> targets, bool analyse)
    : frames_(frames), feed_(device, shape, conversions.size()) {
  feed_.prepare(conversions, FrameMemory::kHost, targets, analyse);
}

FeedRun BenchFeed::run(Clock::time_point until) {
  return feed_.run(until, [this](int number) { return frame(number); });
}

InputFrame BenchFeed::frame(int number) const {
  const PooledImage& image = frames_[static_cast<std::size_t>(number) % frames_.size()];
  InputFrame frame;
  frame.image = as_const(image.image);
  frame.buffer = image.buffer;
  return frame;
}

double steady_rate(const std::vector<FeedRun>& runs, Clock::time_point until) {
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

StageFigures run_feeds(const std::vector<FeedWork>& feeds, double seconds) {
  const double cpu = process_cpu_seconds();
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
          runs[i] = feeds[i](until);
        } catch (const std::exception& error) {
          runs[i].problem = error.what();
        }
      }));
    }
  }
  const double time = seconds_since(start);
  own += completion_cpu_seconds();
  const double all_cpu = process_cpu_seconds() - cpu;
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

StageFigures run_feeds(const std::vector<std::unique_ptr<BenchFeed>>& feeds, double seconds) {
  std::vector<FeedWork> work;
  for (const auto& feed : feeds) {
    work.push_back([&feed](Clock::time_point until) { return feed->run(until); });
  }
  return run_feeds(work, seconds);
}

}  // namespace framelane::bench
