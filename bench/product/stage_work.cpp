#include "bench/product/stage_work.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>

#include "bench/product/stage_work_gpu.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane::bench {

std::vector<Parameter> parameters_of(std::span<const Conversion> conversions) {
  const Conversion& any = conversions.front();
  return {{"size", fmt::format("{}x{}", any.width, any.height)},
          {"formats", formats_of(conversions)}};
}
std::vector<Parameter> parameters_of(std::span<const Conversion> conversions, const Setup& setup) {
  std::vector<Parameter> result = parameters_of(conversions);
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

bool has_usual_ways(const Work& work) {
  return work.conversions.size() == 1 && !work.conversions.front().scaling;
}

double source_bytes(std::span<const Conversion> conversions) {
  const Conversion& any = conversions.front();
  return static_cast<double>(image_bytes(any.source, {"", any.width, any.height}));
}

int frames_of(const Work& work, std::size_t memory) {
  const bool scaled = std::ranges::any_of(work.conversions, [](const Conversion& conversion) {
    return conversion.scaling.has_value();
  });
  const double most = std::min<double>((scaled ? 32 : 96) << 20, static_cast<double>(memory) / 8);
  int count = static_cast<int>(std::clamp(most / source_bytes(work.conversions), 3.0, 32.0));
  const auto goes_round = [&count](const Setup& setup) {
    return std::gcd(count, setup.shape.lanes) == 1;
  };
  while (!std::ranges::all_of(work.setups, goes_round)) ++count;
  return count;
}

std::size_t target_bytes(std::span<const Conversion> conversions, const Setup& setup) {
  return static_cast<std::size_t>(setup.feeds) *
         static_cast<std::size_t>(setup.shape.ring + setup.shape.lanes) * made_bytes(conversions);
}

void drop_the_largest(const Session& session, Work& work, Result& result) {
  const std::size_t most = memory_of(session) / 4;
  std::erase_if(work.setups, [&](const Setup& setup) {
    const std::size_t bytes = target_bytes(work.conversions, setup);
    if (bytes <= most) return false;
    result.left_out.push_back(fmt::format(
        "{} feed{} of {}x{}: their frames are {} MiB, and a quarter of the memory is {}",
        setup.feeds, setup.feeds == 1 ? "" : "s", work.conversions.front().width,
        work.conversions.front().height, bytes >> 20, most >> 20));
    return true;
  });
}

std::size_t frame_bytes(const Work& work, std::size_t memory) {
  return static_cast<std::size_t>(frames_of(work, memory)) *
         (static_cast<std::size_t>(source_bytes(work.conversions)) + made_bytes(work.conversions));
}

StageWork::StageWork(const Session& session, const Work& work, double turn,
                     std::shared_ptr<StageFrames> frames)
    : device_(session.gpu != nullptr ? *session.gpu : *session.cpu),
      work_(work),
      turn_(turn),
      stop_(session.stop),
      made_(frames != nullptr ? std::move(frames)
                              : std::make_shared<StageFrames>(work.conversions)) {
  assert(made_->conversions() == work.conversions);
  const int count = frames_of(work, memory_of(session));
  made_->make(count);
  frames_ = made_->frames().first(static_cast<std::size_t>(count));
  int most_feeds = 1;
  for (const Setup& setup : work.setups) most_feeds = std::max(most_feeds, setup.feeds);
  targets_ =
      std::make_unique<FramePool[]>(static_cast<std::size_t>(most_feeds) * work.conversions.size());
  gpu_ = make_gpu_contenders(session, work, frames_, *made_, turn);
}
StageWork::~StageWork() = default;

std::vector<Contender> StageWork::contenders() {
  std::vector<Contender> result;
  if (gpu_ != nullptr) result = gpu_->ceilings();
  std::ranges::move(setups(), std::back_inserter(result));
  if (gpu_ != nullptr) std::ranges::move(gpu_->usual_ways(), std::back_inserter(result));
  return result;
}
Contender StageWork::kernels() {
  assert(gpu_ != nullptr);
  return gpu_->kernels();
}

std::vector<Contender> StageWork::setups() {
  std::vector<Contender> result;
  for (const Setup& setup : work_.setups) result.push_back(stage(setup));
  return result;
}

Contender StageWork::stage(const Setup& setup) {
  Row row{.name = setup.analyse ? kStageCounting : kStage,
          .parameters = parameters_of(work_.conversions, setup),
          .bytes = source_bytes(work_.conversions),
          .more = {{kMedianLatency, "ms"}, {kHighLatency, "ms"}, {kCpu, "s"}}};
  if (device_.has_copy_engines()) row.more.push_back({kOwnCpu, "s"});
  return {std::move(row), [=, this] { open(setup); },
          [this] {
            figures_ = run_feeds(feeds_, turn_);
            return 1e3 / figures_.steady_frames_per_second;
          },
          [=, this] { return check_and_close(setup.analyse); },
          [this] {
            std::vector<double> more{percentile(figures_.latencies, 0.5) * 1e3,
                                     percentile(figures_.latencies, 0.99) * 1e3,
                                     figures_.cpu_per_1000_frames};
            if (device_.has_copy_engines()) more.push_back(figures_.own_per_1000_frames);
            return more;
          }};
}

/// Feeds exist for a turn: all setups' lanes together would be more than a GPU's memory.
void StageWork::open(const Setup& setup) {
  feeds_.clear();
  try {
    const std::size_t count = work_.conversions.size();
    for (int i = 0; i < setup.feeds; ++i) {
      const std::span targets(&targets_[static_cast<std::size_t>(i) * count], count);
      feeds_.push_back(std::make_unique<BenchFeed>(device_, work_.conversions, setup.shape, frames_,
                                                   targets, setup.analyse));
      feeds_.back()->feed().hold_last_results(setup.shape.lanes);
      feeds_.back()->feed().end_on(stop_);
    }
  } catch (const FeedError& error) {
    if (error.code() != FeedFault::kMemory) throw;
    feeds_.clear();
    throw NoRoom(std::string(error.what()) + kLess);
  }
}

std::string StageWork::check_and_close(bool analysed) {
  std::string wrong;
  for (std::size_t i = 0; i < feeds_.size() && wrong.empty(); ++i) {
    wrong = check(feeds_[i]->feed(), analysed);
    if (!wrong.empty()) wrong = fmt::format("feed {}, {}", i, wrong);
  }
  feeds_.clear();
  return wrong;
}
/// The last results of every lane, after which they are spoilt.
std::string StageWork::check(const StageFeed& feed, bool analysed) const {
  const std::string device = feed.stats().status().device;
  if (!device.empty() && device != device_.name()) return "it went on on " + device;
  if (feed.last_results().empty()) return "no frame came back";
  for (const StageFeed::FrameResult& result : feed.last_results()) {
    const std::string wrong = check(result, analysed);
    if (!wrong.empty()) return fmt::format("frame {}{}", result.number, wrong);
  }
  return {};
}
std::string StageWork::check(const StageFeed::FrameResult& result, bool analysed) const {
  const auto expected = made_->results(static_cast<std::size_t>(result.number) % frames_.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const ImageView& image = result.images[i].image;
    const std::string difference = first_difference(as_const(expected[i].image), as_const(image));
    if (difference.empty()) continue;
    const bool alone = expected.size() == 1;
    return (alone ? "" : fmt::format(", {}x{}", image.width, image.height)) + ", " + difference;
  }
  if (analysed && result.luma != luma_of(as_const(expected.front().image))) {
    return ": its luma is counted wrongly";
  }
  for (const PooledImage& image : result.images) spoil(image.image);
  return {};
}

}  // namespace framelane::bench
