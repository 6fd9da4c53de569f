// The daemon's own stage, from host memory to host memory. Frames go through ring, jobs, ledger and
// timing as in a feed, for several sizes, formats, lanes, rings and slices, and from many feeds at
// once. On a GPU, what the bus can carry is measured in the same rounds.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "bench/harness/suite.hpp"
#include "bench/product/stage_work.hpp"

namespace framelane::bench {
namespace {

constexpr Size kSizes[] = {k1080p, k4K, k8K};
struct Formats {
  PixelFormat source, target;
  bool other_matrix = false;  ///< from BT.601 in limited range instead of full range
};
constexpr Formats kFormats[] = {{PixelFormat::kBgra, PixelFormat::kNv12},
                                {PixelFormat::kBgr24, PixelFormat::kNv12},
                                {PixelFormat::kI420, PixelFormat::kNv12},
                                {PixelFormat::kI420, PixelFormat::kNv12, true}};
constexpr int kFeedCounts[] = {2, 4, 8, 16, 32, 64};
constexpr int kLaneCounts[] = {1, 2, 4, 6, 8};
constexpr int kRings[] = {1, 2, 4, 16};  // one place: one frame at a time
constexpr int kSliceCounts[] = {1, 2, 4, 8, 16};

/// What is made of frames of one size. `renditions`: their sizes; none: the frame's.
std::vector<Conversion> conversions_of(const Formats& formats, const Size& size,
                                       std::span<const PictureSize> renditions) {
  Conversion plain = conversion(formats.source, formats.target, size);
  if (formats.other_matrix) plain.source_color = {Matrix::kBt601, Range::kLimited};
  if (renditions.empty()) return {plain};
  std::vector<Conversion> result;
  const Rect whole{0, 0, size.width, size.height};
  for (const PictureSize& rendition : renditions) {
    result.push_back(plain);
    if (rendition == whole.size()) continue;
    result.back().scaling = Scaling{whole, rendition, {0, 0, rendition.width, rendition.height}};
  }
  return result;
}

/// The defaults, and then one thing changed at a time.
Work make_work(std::vector<Conversion> conversions, bool slices, bool shapes, bool feeds) {
  Work work{std::move(conversions), {{}}};
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
  if (shapes) work.setups.push_back({.analyse = true});
  return work;
}

/// Adds to the stage's rows their share of the ceiling, round by round.
void add_shares(Result& result, std::span<const Conversion> conversions, const char* ceiling,
                const char* figure) {
  const std::vector<Parameter> same = parameters_of(conversions);
  const Row* limit = result.measured(ceiling, same);
  if (limit == nullptr) return;
  const std::vector<double> limits = limit->samples;
  for (Row& row : result.rows) {
    if (!row.counts() || !(row.is(kStage, same) || row.is(kStageCounting, same))) continue;
    Figure share{figure, ""};
    for (std::size_t i = 0; i < std::min(limits.size(), row.samples.size()); ++i) {
      share.samples.push_back(limits[i] / row.samples[i]);
    }
    row.more.push_back(std::move(share));
  }
}

/// A stage that seems faster than its uploads means that one of them was measured wrongly.
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
                    *share, to_string(parameter(row.parameters, "size")),
                    to_string(parameter(row.parameters, "formats"))));
  }
}

std::string name_of(std::span<const Conversion> conversions) {
  const std::vector<Parameter> parameters = parameters_of(conversions);
  return to_string(parameter(parameters, "size")) + ' ' +
         to_string(parameter(parameters, "formats"));
}

void judge_defaults(Result& result, std::span<const Conversion> conversions) {
  const Row* row = result.measured(kStage, parameters_of(conversions, {}));
  if (row == nullptr) return;
  std::string sentence =
      fmt::format("{}: {:.0f} frames/s, half of them back within {:.2f} ms and 99 % within {:.2f}",
                  name_of(conversions), 1e3 / row->median(), *row->median_of(kMedianLatency),
                  *row->median_of(kHighLatency));
  const auto of_uploads = row->median_of(kOfUploads);
  const auto of_both = row->median_of(kOfBothWays);
  if (of_uploads && of_both) {
    sentence += fmt::format("; {:.3f} of what uploads alone do, {:.3f} of uploads beside downloads",
                            *of_uploads, *of_both);
  }
  result.verdict.push_back(std::move(sentence));
}

/// How much faster the stage is than the usual ways, and how near the latency of a single frame
/// comes to its copies and kernel.
void judge_others(Result& result, std::span<const Conversion> conversions) {
  const std::vector<Parameter> same = parameters_of(conversions);
  const Row* stage = result.measured(kStage, parameters_of(conversions, {}));
  for (const char* way : {kPageable, kPinned, kEightStreams}) {
    const Row* row = result.measured(way, same);
    if (stage == nullptr || row == nullptr) continue;
    result.verdict.push_back(fmt::format("{}: {:.2f} times as fast as {}", name_of(conversions),
                                         row->median() / stage->median(), way));
  }
  const Row* alone = result.measured(kStage, parameters_of(conversions, {.shape = {.ring = 1}}));
  const Row* up = result.measured(kUploads, same);
  const Row* down = result.measured(kDownloads, same);
  const Row* kernel = result.measured(kKernels, same);
  if (alone == nullptr || up == nullptr || down == nullptr || kernel == nullptr) return;
  const double latency = *alone->median_of(kMedianLatency);
  result.verdict.push_back(fmt::format(
      "{}: a frame alone is back within {:.3f} ms, {:.2f} times the longer copy and the kernel",
      name_of(conversions), latency,
      latency / (std::max(up->median(), down->median()) + kernel->median())));
}

/// `same` without the parameter `x`.
std::vector<Parameter> without(std::vector<Parameter> same, std::string_view x) {
  std::erase_if(same, [x](const Parameter& parameter) { return parameter.name == x; });
  return same;
}

Series stage_series(const Result& result, std::span<const Conversion> conversions,
                    const Setup& setup, const char* x) {
  return series_of(result, name_of(conversions), kStage,
                   without(parameters_of(conversions, setup), x), x);
}

/// The fewest lanes, places or slices that are as good as any.
void judge_fewest(Result& result, std::span<const Conversion> conversions, const Setup& setup,
                  const char* x, const char* where) {
  const Series series = stage_series(result, conversions, setup, x);
  if (series.points.size() < 2) return;
  result.verdict.push_back(fmt::format(
      "{}{}: {} {:.0f} is within 2 % of the best, {:.3f} ms per frame", name_of(conversions), where,
      x, fewest_of_the_best(series).x, std::ranges::min(series.points, {}, &Point::y).y));
}

void judge_feeds(Result& result, std::span<const Conversion> conversions) {
  const Row* one = result.measured(kStage, parameters_of(conversions, {}));
  const Row* most = nullptr;
  for (const int feeds : kFeedCounts) {
    const Row* row = result.measured(kStage, parameters_of(conversions, {.feeds = feeds}));
    if (row != nullptr) most = row;
  }
  if (one == nullptr || most == nullptr) return;
  const auto feeds = std::get<std::int64_t>(parameter(most->parameters, "feeds").value);
  result.verdict.push_back(
      fmt::format("{} feeds of {} carry {:.2f} times the frames of one, {:.1f} a second each, with "
                  "{:.3f} s of CPU per 1000 frames instead of {:.3f}",
                  feeds, name_of(conversions), one->median() / most->median(),
                  1e3 / most->median() / static_cast<double>(feeds), *most->median_of(kCpu),
                  *one->median_of(kCpu)));
}

void judge_counting(Result& result, std::span<const Conversion> conversions) {
  const Row* plain = result.measured(kStage, parameters_of(conversions, {}));
  const Row* counting = result.measured(kStageCounting, parameters_of(conversions, {}));
  if (plain == nullptr || counting == nullptr) return;
  result.verdict.push_back(
      fmt::format("{}: with its luma counted a frame takes {:.3f} times as long",
                  name_of(conversions), counting->median() / plain->median()));
}

void judge(Result& result, const std::vector<Work>& works) {
  for (const Work& work : works) judge_defaults(result, work.conversions);
  for (const Work& work : works) {
    judge_others(result, work.conversions);
    judge_fewest(result, work.conversions, {}, "lanes", "");
    judge_fewest(result, work.conversions, {}, "ring", "");
    judge_fewest(result, work.conversions, {}, "slices", "");
    judge_fewest(result, work.conversions, {.shape = {.ring = 1}}, "slices",
                 ", one frame at a time");
    judge_feeds(result, work.conversions);
    judge_counting(result, work.conversions);
  }
}

void draw(Result& result, std::span<const Conversion> conversions) {
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
    Series series = stage_series(result, conversions, setup, x);
    if (series.points.size() < 2) continue;
    Chart chart{
        fmt::format("{}: {}", name_of(conversions), title), x, "ms per frame", true, {}, {}};
    chart.series.push_back(std::move(series));
    for (const char* ceiling : {kUploads, kBothWays}) {
      const Row* row = result.measured(ceiling, parameters_of(conversions));
      if (row != nullptr) chart.levels.push_back({ceiling, row->median()});
    }
    result.charts.push_back(std::move(chart));
  }
}

std::optional<std::string> why_impossible(std::span<const Conversion> conversions) {
  for (const Conversion& conversion : conversions) {
    if (auto why = why_unsupported(conversion)) return why;
  }
  return std::nullopt;
}

/// Why a piece of work could not be done.
std::string problem_of(const Work& work, const std::exception& error) {
  return fmt::format("{}: {}{}", name_of(work.conversions), error.what(),
                     lacks_memory(error) ? kLess : "");
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
      std::vector<Conversion> conversions = conversions_of(formats, size, session.renditions);
      if (const auto why = why_impossible(conversions)) {
        result.problems.push_back(name_of(conversions) + ": " + *why);
        continue;
      }
      works.push_back(make_work(std::move(conversions), on_gpu, first && ends,
                                first && size.width == sizes.front().width));
      works.back().ceilings = on_gpu ? 2 : 0;
      works.back().with_others = on_gpu && first && ends;
      if (works.back().with_others) {
        works.back().ceilings += StageWork::kParts;
        if (has_usual_ways(works.back())) works.back().ceilings += StageWork::kUsualWays;
      }
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
      require_memory(session, frame_bytes(work, memory_of(session)), "--size");
      StageWork stage(session, work, turn);
      take_turns(session, turn, stage.contenders(), result);
    } catch (const std::exception& error) {
      result.problems.push_back(problem_of(work, error));
    }
    add_shares(result, work.conversions, kUploads, kOfUploads);
    add_shares(result, work.conversions, kBothWays, kOfBothWays);
  }
  if (device.lost()) result.problems.push_back(device.name() + " was lost");
  doubt_ceilings(result, turn);
  judge(result, works);
  for (const Work& work : works) draw(result, work.conversions);
}

}  // namespace framelane::bench
