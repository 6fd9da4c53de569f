#include "bench/product/stage_work.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>

#include "bench/product/stage_work_gpu.hpp"
#include "pipeline/base/failure.hpp"

namespace framelane::bench {

std::vector<Parameter> parameters_of(const Conversion& convert) {
  return {{"size", fmt::format("{}x{}", convert.width, convert.height)},
          {"formats", formats_of(convert)}};
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

double source_bytes(const Conversion& convert) {
  return static_cast<double>(image_bytes(convert.source, {"", convert.width, convert.height}));
}

int frames_of(const Work& work, std::size_t memory) {
  const double most = std::min<double>(96 << 20, static_cast<double>(memory) / 8);
  int count = static_cast<int>(std::clamp(most / source_bytes(work.convert), 3.0, 32.0));
  const auto goes_round = [&count](const Setup& setup) {
    return std::gcd(count, setup.shape.lanes) == 1;
  };
  while (!std::ranges::all_of(work.setups, goes_round)) ++count;
  return count;
}

std::size_t target_bytes(const Conversion& convert, const Setup& setup) {
  return static_cast<std::size_t>(setup.feeds) *
         static_cast<std::size_t>(setup.shape.ring + setup.shape.lanes) *
         image_bytes(convert.target, {"", convert.width, convert.height});
}

void drop_the_largest(const Session& session, Work& work, Result& result) {
  const std::size_t most = memory_of(session) / 4;
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

std::size_t frame_bytes(const Work& work, std::size_t memory) {
  const Size size{"", work.convert.width, work.convert.height};
  return static_cast<std::size_t>(frames_of(work, memory)) *
         (image_bytes(work.convert.source, size) + image_bytes(work.convert.target, size));
}

StageWork::StageWork(const Session& session, const Work& work, double turn)
    : device_(session.gpu != nullptr ? *session.gpu : *session.cpu),
      work_(work),
      turn_(turn),
      stop_(session.stop),
      frames_(
          make_frames(sources_, work.convert.source, size(), frames_of(work, memory_of(session)))) {
  for (const PooledImage& frame : frames_) {
    expected_.push_back(reference_result(work.convert, as_const(frame.image)));
  }
  for (const Setup& setup : work.setups) most_feeds_ = std::max(most_feeds_, setup.feeds);
  targets_ = std::make_unique<FramePool[]>(static_cast<std::size_t>(most_feeds_));
  gpu_ = make_gpu_contenders(session, work, frames_, expected_, turn);
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
          .parameters = parameters_of(work_.convert, setup),
          .bytes = source_bytes(work_.convert),
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
    for (int i = 0; i < setup.feeds; ++i) {
      feeds_.push_back(std::make_unique<BenchFeed>(device_, work_.convert, setup.shape, frames_,
                                                   targets_[static_cast<std::size_t>(i)],
                                                   setup.analyse));
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
    const auto number = static_cast<std::size_t>(result.number);
    const ConstImageView expected = as_const(expected_[number % expected_.size()].image);
    const std::string difference = first_difference(expected, as_const(result.image.image));
    if (!difference.empty()) return fmt::format("frame {}, {}", number, difference);
    if (analysed && result.luma != luma_of(expected)) {
      return fmt::format("frame {}: its luma is counted wrongly", number);
    }
    spoil(result.image.image);
  }
  return {};
}

}  // namespace framelane::bench
