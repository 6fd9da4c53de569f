#include "tune/measuring.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "pipeline/base/processors.hpp"

namespace framelane::bench {
namespace {

constexpr std::array kLaneCounts{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr int kMostLanesOfGpu = 8;

}  // namespace

std::string work_of(const FeedKind& kind) {
  const Conversion& any = kind.conversions.front();
  return fmt::format("{}x{} {}", any.width, any.height, formats_of(kind.conversions));
}

double frames_per_second(const std::vector<double>& milliseconds) {
  return 1e3 / percentile(milliseconds, 0.5);
}

StageShape Measuring::shape_of(const Settings& settings) const {
  const bool sliced = on_gpu() && settings.slices != kAutoSlices;
  return {settings.lanes, settings.ring, sliced ? std::optional(settings.slices) : std::nullopt};
}

std::vector<int> Measuring::lane_counts() const {
  const int most = on_gpu() ? kMostLanesOfGpu : std::max(kLanes + 1, processors());
  std::vector<int> counts;
  for (const int count : kLaneCounts) {
    if (count <= most) counts.push_back(count);
  }
  return counts;
}

bool Measuring::is_over() const {
  if (result_.interrupted || session_.stopped()) return true;
  return std::ranges::any_of(result_.rows,
                             [](const Row& row) { return row.checked == Checked::kWrong; });
}

void Measuring::label(std::size_t first, const std::string& part) {
  for (std::size_t i = first; i < result_.rows.size(); ++i) {
    result_.rows[i].parameters.push_back({"part", part});
  }
}

std::vector<Row> Measuring::measure(const FeedKind& kind, const std::vector<Setup>& setups,
                                    const std::string& part, bool with_ceilings) {
  Work work{kind.conversions, setups};
  drop_the_largest(device_, work, result_);
  require_memory(session_, frame_bytes(work, memory_of(session_)), "--size");
  StageWork stage(device_, work, turn_of(kind), frames_for(kind));
  std::vector<Contender> contenders = with_ceilings ? stage.contenders() : stage.setups();
  if (with_ceilings && on_gpu()) contenders.insert(contenders.begin(), stage.kernels());
  const std::size_t first = result_.rows.size();
  const std::size_t problems = result_.problems.size();
  take_turns(device_, turn_of(kind), contenders, result_);
  std::vector<Row> rows(result_.rows.begin() + static_cast<std::ptrdiff_t>(first),
                        result_.rows.end());
  // A setting for which there is no room cannot be recommended, but is no failure.
  if (!is_over()) {
    std::move(result_.problems.begin() + static_cast<std::ptrdiff_t>(problems),
              result_.problems.end(), std::back_inserter(result_.left_out));
    result_.problems.resize(problems);
  }
  label(first, part);
  return rows;
}

std::shared_ptr<StageFrames> Measuring::frames_for(const FeedKind& kind) {
  if (frames_ == nullptr || frames_->conversions() != kind.conversions) {
    frames_.reset();  // first: there may be no room for both
    frames_ = std::make_shared<StageFrames>(kind.conversions);
  }
  return frames_;
}

/// Long enough for many frames: frames come back in groups, and a few groups would be too inexact.
double Measuring::turn_of(const FeedKind& kind) const {
  constexpr double kFrames = 30;
  const auto seen = std::ranges::find(seen_, kind.conversions, &Seen::conversions);
  if (turn_ == 0 || seen == seen_.end()) return turn_;
  return std::max(turn_, kFrames / seen->frames_per_second);
}

int Measuring::fitting(const FeedKind& kind, const Settings& settings, int feeds) const {
  feeds = std::min(feeds, kMostFeeds);
  const std::size_t host = memory_of(session_) / 4;
  const std::size_t device = on_gpu() ? free_device_bytes(device_) / 2 : 0;
  while (feeds > 1 && (target_bytes(kind.conversions, {feeds, shape_of(settings)}) > host ||
                       (on_gpu() && static_cast<std::size_t>(feeds) *
                                            device_bytes(kind.conversions, settings.lanes) >
                                        device))) {
    feeds /= 2;
  }
  return feeds;
}
int Measuring::many_feeds(const FeedKind& kind, const Settings& settings) const {
  constexpr int kEnough = 4;
  return fitting(kind, settings, std::max({kind.feeds, processors() / kLanes + 1, kEnough}));
}
int Measuring::its_feeds(const FeedKind& kind) const {
  const int ring = std::max(kRings.back(), kind.present ? kind.present->ring : 0);
  return fitting(kind, {lane_counts().back(), ring, kAutoSlices}, kind.feeds);
}

}  // namespace framelane::bench
