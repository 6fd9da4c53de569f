#include <fmt/core.h>

#include <algorithm>

#include "pipeline/base/processors.hpp"
#include "tune/measuring.hpp"

namespace framelane::bench {
namespace {

double in_mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Bytes of the machine's memory that one feed's frames need at most, while they wait for the
/// conversion and for the encodes.
std::size_t host_bytes(const FeedKind& kind, const Settings& settings) {
  return static_cast<std::size_t>(settings.ring + settings.lanes) *
         (static_cast<std::size_t>(source_bytes(kind.conversions)) + made_bytes(kind.conversions));
}

class CeilingSearch : private Measuring {
 public:
  explicit CeilingSearch(const Measuring& measuring) : Measuring(measuring) {}

  /// First with enough feeds to keep the device busy. Then, since many feeds together carry less
  /// than a few, with as many as the first result promises.
  bool find(TunedKind& tuned) {
    int feeds = many_feeds(tuned.kind, tuned.settings);
    std::vector<Row> rows =
        measure(tuned.kind, {{feeds, shape_of(tuned.settings)}}, "ceiling", true);
    if (!take_rate(tuned, rows)) return false;
    const double of_few = tuned.frames_per_second;
    const int more =
        fitting(tuned.kind, tuned.settings,
                static_cast<int>(std::min(of_few / tuned.kind.rate, double{kMostFeeds})));
    if (more > feeds) {
      const std::vector<Row> again =
          measure(tuned.kind, {{more, shape_of(tuned.settings)}}, "ceiling, the most feeds");
      if (!take_rate(tuned, again)) return false;
      feeds = more;
      tuned.frames_per_second = std::min(tuned.frames_per_second, of_few);
    }
    const std::size_t memory = memory_of(session_);
    const Needs needs{
        .frames_per_second = tuned.frames_per_second,
        .rate = tuned.kind.rate,
        .device_bytes = on_gpu() ? device_bytes(tuned.kind.conversions, tuned.settings.lanes) : 0,
        .device_free = on_gpu() ? free_device_bytes(device_) : 0,
        .host_bytes = host_bytes(tuned.kind, tuned.settings),
        .host_free = memory / 2};
    tuned.ceiling = ceiling_of(needs);
    tuned.ceiling_reason = fmt::format("{:.0f} frames/s in all, measured with {} feed{}",
                                       tuned.frames_per_second, feeds, feeds == 1 ? "" : "s");
    switch (tuned.ceiling.bound) {
      case Ceiling::Bound::kFrames:
        tuned.ceiling_reason += "; the limit is " + limit(rows, tuned.frames_per_second);
        break;
      case Ceiling::Bound::kDeviceMemory:
        tuned.ceiling_reason +=
            fmt::format("; the limit is the GPU's memory: {:.0f} MiB a feed, {:.0f} free",
                        in_mebibytes(needs.device_bytes), in_mebibytes(needs.device_free));
        break;
      case Ceiling::Bound::kHostMemory:
        tuned.ceiling_reason += fmt::format(
            "; the limit is memory: {:.0f} MiB of frames a feed, and half of the machine's is "
            "{:.0f}",
            in_mebibytes(needs.host_bytes), in_mebibytes(needs.host_free));
        break;
    }
    return true;
  }

  /// What holds the stage up: the slowest of uploads, copies both ways and kernels, each measured
  /// alone.
  std::string limit(const std::vector<Row>& rows, double stage) const {
    if (!on_gpu()) {
      const int count = processors();
      return fmt::format("the CPU, {} processor{}", count, count == 1 ? "" : "s");
    }
    const Row* least = nullptr;
    for (const char* name : {kUploads, kBothWays, kKernels}) {
      const auto row = std::ranges::find(rows, name, &Row::name);
      if (row == rows.end() || row->samples.empty()) continue;
      if (least == nullptr || row->median() > least->median()) least = &*row;
    }
    if (least == nullptr) return "not known";
    const double alone = 1e3 / least->median();
    return fmt::format("the {}: {} do {:.0f}, of which this is {:.2f}",
                       least->name == kKernels ? "GPU" : "bus", least->name, alone, stage / alone);
  }

 private:
  /// Takes the stage's rate from rows of measure(). False if there is none.
  bool take_rate(TunedKind& tuned, const std::vector<Row>& rows) {
    if (is_over()) return false;
    const auto stage = std::ranges::find(rows, kStage, &Row::name);
    if (stage == rows.end() || stage->samples.empty()) {
      result_.problems.push_back(work_of(tuned.kind) +
                                 ": the recommended settings could not be measured");
      return false;
    }
    tuned.frames_per_second = frames_per_second(stage->samples);
    return true;
  }
};

}  // namespace

bool find_ceiling(const Measuring& measuring, TunedKind& tuned) {
  return CeilingSearch(measuring).find(tuned);
}

}  // namespace framelane::bench
