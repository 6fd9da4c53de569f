// The daemon's own stage, host to host: frames go through ring, jobs, ledger and timing as in a
// feed, for several sizes, formats, lanes, rings and slices, and from many feeds at once. On a GPU
// beside what the bus can carry, in the same rounds.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "bench/stage_feed.hpp"
#include "bench/suites/pictures.hpp"
#include "bench/suites/suite.hpp"
#include "pipeline/failure.hpp"
#ifdef FRAMELANE_WITH_CUDA
#include "bench/stage_ceilings.hpp"
#include "bench/suites/gpu_part.hpp"
#endif

namespace framelane::bench {
namespace {

constexpr Size kSizes[] = {k1080p, k4K, k8K};
struct Formats {
  PixelFormat source, target;
};
constexpr Formats kFormats[] = {{PixelFormat::kBgra, PixelFormat::kNv12},
                                {PixelFormat::kBgr24, PixelFormat::kNv12},
                                {PixelFormat::kI420, PixelFormat::kNv12}};
constexpr int kFeedCounts[] = {2, 4, 8, 16, 32, 64};
constexpr int kLaneCounts[] = {1, 2, 4, 6, 8};
constexpr int kRings[] = {1, 2, 4, 16};  // one place: one frame at a time
constexpr int kSliceCounts[] = {1, 2, 4, 8, 16};

constexpr const char* kUploads = "uploads alone";
constexpr const char* kBothWays = "uploads beside downloads";
constexpr const char* kStage = "stage";
constexpr const char* kOfUploads = "of uploads";
constexpr const char* kOfBothWays = "of both ways";
constexpr const char* kMedianLatency = "p50";
constexpr const char* kHighLatency = "p99";
constexpr const char* kCpu = "CPU/1000";
constexpr const char* kOwnCpu = "own CPU/1000";

constexpr const char* kLess = "; ask for less with --size";

struct Setup {
  int feeds = 1;
  StageShape shape = {};
};

std::vector<Parameter> parameters_of(const Conversion& convert) {
  return {
      {"size", fmt::format("{}x{}", convert.width, convert.height)},
      {"formats", fmt::format("{} to {}", info(convert.source).name, info(convert.target).name)}};
}
std::vector<Parameter> parameters_of(const Conversion& convert, const Setup& setup) {
  std::vector<Parameter> result = parameters_of(convert);
  result.push_back({"feeds", std::int64_t{setup.feeds}});
  result.push_back({"lanes", std::int64_t{setup.shape.lanes}});
  result.push_back({"ring", std::int64_t{setup.shape.ring}});
  if (setup.shape.slices) {
    result.push_back({"slices", std::int64_t{*setup.shape.slices}});
  } else {
    result.push_back({"slices", "auto"});
  }
  return result;
}

/// One size and conversion, and what is tried with it.
struct Work {
  Conversion convert;
  std::vector<Setup> setups;
  int ceilings = 0;
};

/// The defaults, and then one thing changed at a time.
Work make_work(const Formats& formats, const Size& size, bool slices, bool shapes, bool feeds) {
  Work work{conversion(formats.source, formats.target, size), {{}}, 0};
  if (shapes) {
    for (const int lanes : kLaneCounts) work.setups.push_back({.shape = {.lanes = lanes}});
    for (const int ring : kRings) work.setups.push_back({.shape = {.ring = ring}});
  }
  if (shapes && slices) {
    for (const int count : kSliceCounts) {
      work.setups.push_back({.shape = {.slices = count}});
      work.setups.push_back({.shape = {.ring = 1, .slices = count}});
    }
  }
  if (feeds) {
    for (const int count : kFeedCounts) work.setups.push_back({.feeds = count});
  }
  return work;
}

/// What the results of a setup take that its feeds may hold at once.
std::size_t target_bytes(const Conversion& convert, const Setup& setup) {
  return static_cast<std::size_t>(setup.feeds) *
         static_cast<std::size_t>(setup.shape.ring + setup.shape.lanes) *
         image_bytes(convert.target, {"", convert.width, convert.height});
}

std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Takes out what would need more of the machine's memory than others like to give.
void drop_the_largest(const Session& session, Work& work, Result& result) {
  const std::size_t most = (session.memory > 0 ? session.memory : machine_memory()) / 4;
  std::erase_if(work.setups, [&](const Setup& setup) {
    const std::size_t bytes = target_bytes(work.convert, setup);
    if (bytes <= most) return false;
    result.left_out.push_back(fmt::format(
        "{} feed{} of {}x{}: their frames are {} MiB, and a quarter of the memory is {}",
        setup.feeds, setup.feeds == 1 ? "" : "s", work.convert.width, work.convert.height,
        bytes >> 20, most >> 20));
    return true;
  });
}

/// One size and conversion: its frames, what they have to become, and the ways that take turns.
class StageWork {
 public:
  StageWork(const Session& session, const Work& work, double turn)
      : device_(session.gpu != nullptr ? *session.gpu : *session.cpu),
        work_(work),
        turn_(turn),
        frames_(make_frames(sources_, work.convert.source, size(), frame_count())) {
    for (const PooledImage& frame : frames_) {
      expected_.push_back(reference_result(work.convert, as_const(frame.image)));
    }
    for (const Setup& setup : work.setups) most_feeds_ = std::max(most_feeds_, setup.feeds);
    targets_ = std::make_unique<FramePool[]>(static_cast<std::size_t>(most_feeds_));
#ifdef FRAMELANE_WITH_CUDA
    if (session.gpu != nullptr) {
      ceilings_ = std::make_unique<StageCeilings>(context_of(session), work.convert, frames_);
    }
#endif
  }

  std::vector<Contender> contenders() {
    std::vector<Contender> result;
#ifdef FRAMELANE_WITH_CUDA
    if (ceilings_ != nullptr) {
      result.push_back(ceiling(kUploads, &StageCeilings::upload));
      result.push_back(ceiling(kBothWays, &StageCeilings::duplex));
    }
#endif
    for (const Setup& setup : work_.setups) result.push_back(stage(setup));
    return result;
  }

 private:
  Size size() const { return {"", work_.convert.width, work_.convert.height}; }
  double source_bytes() const {
    return static_cast<double>(image_bytes(work_.convert.source, size()));
  }
  /// More than caches hold, where that is not too many.
  int frame_count() const {
    constexpr double kCold = 96 << 20;
    return static_cast<int>(std::clamp(kCold / source_bytes(), 3.0, 32.0));
  }

#ifdef FRAMELANE_WITH_CUDA
  Contender ceiling(const char* name, double (StageCeilings::*rate)(double) const) {
    return {{.name = name, .parameters = parameters_of(work_.convert), .bytes = source_bytes()},
            {},
            [=, this] { return 1e3 / (*ceilings_.*rate)(turn_); },
            {}};
  }
#endif

  Contender stage(const Setup& setup) {
    Row row{.name = kStage,
            .parameters = parameters_of(work_.convert, setup),
            .bytes = source_bytes(),
            .more = {{kMedianLatency, "ms"}, {kHighLatency, "ms"}, {kCpu, "s"}}};
    if (device_.has_copy_engines()) row.more.push_back({kOwnCpu, "s"});
    return {std::move(row), [=, this] { open(setup); },
            [this] {
              figures_ = run_feeds(feeds_, turn_);
              return 1e3 / figures_.steady_frames_per_second;
            },
            [this] { return check_and_close(); },
            [this] {
              std::vector<double> more{percentile(figures_.latencies, 0.5) * 1e3,
                                       percentile(figures_.latencies, 0.99) * 1e3,
                                       figures_.cpu_per_1000_frames};
              if (device_.has_copy_engines()) more.push_back(figures_.own_per_1000_frames);
              return more;
            }};
  }

  /// Feeds exist for a turn: all setups' lanes together would be more than a GPU's memory.
  void open(const Setup& setup) {
    feeds_.clear();
    try {
      for (int i = 0; i < setup.feeds; ++i) {
        feeds_.push_back(std::make_unique<BenchFeed>(device_, work_.convert, setup.shape, frames_,
                                                     targets_[static_cast<std::size_t>(i)]));
        feeds_.back()->feed().keep(setup.shape.lanes);
      }
    } catch (const FeedError& error) {
      if (error.code() != FeedFault::kMemory) throw;
      feeds_.clear();
      throw NoRoom(std::string(error.what()) + kLess);
    }
  }
  std::string check_and_close() {
    std::string wrong;
    for (std::size_t i = 0; i < feeds_.size() && wrong.empty(); ++i) {
      wrong = check(feeds_[i]->feed());
      if (!wrong.empty()) wrong = fmt::format("feed {}, {}", i, wrong);
    }
    feeds_.clear();
    return wrong;
  }
  /// The last results of every lane, after which they are spoilt.
  std::string check(const StageFeed& feed) const {
    const std::string device = feed.stats().status().device;
    if (!device.empty() && device != device_.name()) return "it went on on " + device;
    if (feed.kept().empty()) return "no frame came back";
    for (const StageFeed::Kept& kept : feed.kept()) {
      const auto number = static_cast<std::size_t>(kept.number);
      const std::string difference = first_difference(
          as_const(expected_[number % expected_.size()].image), as_const(kept.image.image));
      if (!difference.empty()) return fmt::format("frame {}, {}", number, difference);
      spoil(kept.image.image);
    }
    return {};
  }

  Device& device_;
  const Work& work_;
  const double turn_;
  FramePool sources_;
  const std::vector<PooledImage> frames_;
  std::vector<PlainImage> expected_;
  int most_feeds_ = 1;
  std::unique_ptr<FramePool[]> targets_;  // one for each feed, kept from turn to turn
#ifdef FRAMELANE_WITH_CUDA
  std::unique_ptr<StageCeilings> ceilings_;
#endif
  std::vector<std::unique_ptr<BenchFeed>> feeds_;  // of this turn
  StageFigures figures_{};                         // of the last one
};

/// Round by round, the ceiling's time over the stage's.
void add_shares(Result& result, const Conversion& convert, const char* ceiling,
                const char* figure) {
  const std::vector<Parameter> same = parameters_of(convert);
  const Row* limit = result.measured(ceiling, same);
  if (limit == nullptr) return;
  const std::vector<double> limits = limit->samples;
  for (Row& row : result.rows) {
    if (!row.counts() || !row.is(kStage, same)) continue;
    Figure share{figure, ""};
    for (std::size_t i = 0; i < std::min(limits.size(), row.samples.size()); ++i) {
      share.samples.push_back(limits[i] / row.samples[i]);
    }
    row.more.push_back(std::move(share));
  }
}

/// A stage cannot be faster than its uploads.
void doubt_ceilings(Result& result, double turn) {
  constexpr double kCredible = 1.05;  // for noise
  constexpr double kLongEnough = 0.05;
  if (turn < kLongEnough) return;
  for (const Row& row : result.rows) {
    const auto share = row.median_of(kOfUploads);
    if (!share || *share <= kCredible) continue;
    result.problems.push_back(
        fmt::format("the stage seems to carry {:.3f} of what uploads alone do ({}, {}): their rate "
                    "is measured wrongly",
                    *share, to_string(row.parameters[0]), to_string(row.parameters[1])));
  }
}

std::string name_of(const Conversion& convert) {
  const std::vector<Parameter> parameters = parameters_of(convert);
  return to_string(parameters[0]) + ' ' + to_string(parameters[1]);
}

void judge_defaults(Result& result, const Conversion& convert) {
  const Row* row = result.measured(kStage, parameters_of(convert, {}));
  if (row == nullptr) return;
  std::string sentence =
      fmt::format("{}: {:.0f} frames/s, half of them back within {:.2f} ms and 99 % within {:.2f}",
                  name_of(convert), 1e3 / row->median(), *row->median_of(kMedianLatency),
                  *row->median_of(kHighLatency));
  const auto of_uploads = row->median_of(kOfUploads);
  const auto of_both = row->median_of(kOfBothWays);
  if (of_uploads && of_both) {
    sentence += fmt::format("; {:.3f} of what uploads alone do, {:.3f} of uploads beside downloads",
                            *of_uploads, *of_both);
  }
  result.verdict.push_back(std::move(sentence));
}

/// `same` but for `x`.
std::vector<Parameter> without(std::vector<Parameter> same, std::string_view x) {
  std::erase_if(same, [x](const Parameter& parameter) { return parameter.name == x; });
  return same;
}

Series stage_series(const Result& result, const Conversion& convert, const Setup& setup,
                    const char* x) {
  return series_of(result, name_of(convert), kStage, without(parameters_of(convert, setup), x), x);
}

/// The fewest lanes, places or slices that are as good as any.
void judge_fewest(Result& result, const Conversion& convert, const Setup& setup, const char* x,
                  const char* where) {
  const Series series = stage_series(result, convert, setup, x);
  if (series.points.size() < 2) return;
  result.verdict.push_back(fmt::format(
      "{}{}: {} {:.0f} is within 2 % of the best, {:.3f} ms per frame", name_of(convert), where, x,
      fewest_of_the_best(series).x, std::ranges::min(series.points, {}, &Point::y).y));
}

void judge_feeds(Result& result, const Conversion& convert) {
  const Row* one = result.measured(kStage, parameters_of(convert, {}));
  const Row* most = nullptr;
  for (const int feeds : kFeedCounts) {
    const Row* row = result.measured(kStage, parameters_of(convert, {.feeds = feeds}));
    if (row != nullptr) most = row;
  }
  if (one == nullptr || most == nullptr) return;
  result.verdict.push_back(fmt::format(
      "{} feeds of {} carry {:.2f} times the frames of one, {:.1f} a second each, with "
      "{:.3f} s of CPU per 1000 frames instead of {:.3f}",
      to_string(most->parameters[2]), name_of(convert), one->median() / most->median(),
      1e3 / most->median() / static_cast<double>(std::get<std::int64_t>(most->parameters[2].value)),
      *most->median_of(kCpu), *one->median_of(kCpu)));
}

void judge(Result& result, const std::vector<Work>& works) {
  for (const Work& work : works) judge_defaults(result, work.convert);
  for (const Work& work : works) {
    judge_fewest(result, work.convert, {}, "lanes", "");
    judge_fewest(result, work.convert, {}, "ring", "");
    judge_fewest(result, work.convert, {}, "slices", "");
    judge_fewest(result, work.convert, {.shape = {.ring = 1}}, "slices", ", one frame at a time");
    judge_feeds(result, work.convert);
  }
}

void draw(Result& result, const Conversion& convert) {
  struct Drawn {
    const char* title;
    Setup setup;
    const char* x;
  };
  for (const auto& [title, setup, x] :
       {Drawn{"lanes of one feed", {}, "lanes"}, Drawn{"places in the ring", {}, "ring"},
        Drawn{"slices of a frame", {}, "slices"},
        Drawn{"slices, one frame at a time", {.shape = {.ring = 1}}, "slices"},
        Drawn{"feeds at once", {}, "feeds"}}) {
    Series series = stage_series(result, convert, setup, x);
    if (series.points.size() < 2) continue;
    Chart chart{fmt::format("{}: {}", name_of(convert), title), x, "ms per frame", true, {}, {}};
    chart.series.push_back(std::move(series));
    for (const char* ceiling : {kUploads, kBothWays}) {
      const Row* row = result.measured(ceiling, parameters_of(convert));
      if (row != nullptr) chart.levels.push_back({ceiling, row->median()});
    }
    result.charts.push_back(std::move(chart));
  }
}

/// What a piece of work could not be done for.
std::string problem_of(const Work& work, const std::exception& error) {
  bool memory = dynamic_cast<const FeedError*>(&error) != nullptr;
#ifdef FRAMELANE_WITH_CUDA
  const auto* cuda = dynamic_cast<const CudaError*>(&error);
  memory = memory || (cuda != nullptr && cuda->code() == cudaErrorMemoryAllocation);
#endif
  return fmt::format("{}: {}{}", name_of(work.convert), error.what(), memory ? kLess : "");
}

std::vector<Work> works_of(const Session& session, Result& result) {
  const bool on_gpu = session.gpu != nullptr;
  std::vector<Size> sizes(std::begin(kSizes), std::end(kSizes));
  if (session.width > 0) sizes = {{"", session.width, session.height}};
  std::vector<Work> works;
  for (const Size& size : sizes) {
    const bool ends = size.width == sizes.front().width || size.width == sizes.back().width;
    for (const Formats& formats : kFormats) {
      const bool first = formats.source == PixelFormat::kBgra;
      works.push_back(make_work(formats, size, on_gpu, first && ends,
                                first && size.width == sizes.front().width));
      works.back().ceilings = on_gpu ? 2 : 0;
      drop_the_largest(session, works.back(), result);
    }
  }
  return works;
}

}  // namespace

void run_stage(const Session& session, Result& result) {
  const Device& device = session.gpu != nullptr ? *session.gpu : *session.cpu;
  result.setup.push_back({"device", device.name()});
  result.setup.push_back(
      {"otherwise", fmt::format("1 feed, {} lanes, ring {}, slices auto", kLanes, kRing)});
  if (session.gpu == nullptr) {
    result.left_out.push_back("ceilings of copies, and slices, of which the CPU has none: " +
                              session.no_gpu);
  }
  const std::vector<Work> works = works_of(session, result);
  std::size_t contenders = 0;
  for (const Work& work : works) {
    contenders += work.setups.size() + static_cast<std::size_t>(work.ceilings);
  }
  const double turn = turn_seconds(session, contenders);
  for (const Work& work : works) {
    if (session.stopped() && !result.rows.empty()) break;
    try {
      StageWork stage(session, work, turn);
      take_turns(session, turn, stage.contenders(), result);
    } catch (const std::exception& error) {
      result.problems.push_back(problem_of(work, error));
    }
    add_shares(result, work.convert, kUploads, kOfUploads);
    add_shares(result, work.convert, kBothWays, kOfBothWays);
  }
  if (device.lost()) result.problems.push_back(device.name() + " was lost");
  doubt_ceilings(result, turn);
  judge(result, works);
  for (const Work& work : works) draw(result, work.convert);
}

}  // namespace framelane::bench
