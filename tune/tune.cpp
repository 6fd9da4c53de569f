#include "tune/tune.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "pipeline/base/processors.hpp"
#include "tune/measuring.hpp"

namespace framelane::bench {
namespace {

constexpr int kMostRing = 256;
constexpr std::array kSliceCounts{kAutoSlices, 1, 2, 4, 8, 16};
/// Of a device's time: where feeds need more of it, their frames meet.
constexpr double kFramesMeet = 0.5;

/// Places for every lane to have a job on its way while its next is made ready.
int ample_ring(int lanes) { return std::min(std::max(kRing, 2 * lanes), kMostRing); }

double frames_per_second(const std::vector<double>& milliseconds) {
  return 1e3 / percentile(milliseconds, 0.5);
}

double in_mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// What one feed's frames take of the machine's memory at most: those that wait for the conversion
/// or for whoever takes them.
std::size_t host_bytes(const FeedKind& kind, const Settings& settings) {
  const Size size{"", kind.convert.width, kind.convert.height};
  return static_cast<std::size_t>(settings.ring + settings.lanes) *
         (image_bytes(kind.convert.source, size) +
          static_cast<std::size_t>(kind.encodes) * image_bytes(kind.convert.target, size));
}

std::string reason_of(const Pick& pick, const char* what) {
  const auto percent = [](double longer) {
    return fmt::format("{:.1f} %", (std::max(longer, 1.0) - 1) * 100);
  };
  const std::string is_good = pick.best == pick.value
                                  ? ", and the fastest"
                                  : fmt::format("; {} slower than {}, no more than noise",
                                                percent(pick.longer), slices_text(pick.best));
  switch (pick.why) {
    case Pick::Why::kDefault:
      return "the default" + is_good;
    case Pick::Why::kPresent:
      return "as it is set" + is_good;
    case Pick::Why::kFewest:
      return fmt::format("the fewest {} that are as good as any; the default takes {} longer", what,
                         percent(pick.default_longer));
    case Pick::Why::kOnlyOne:
      break;
  }
  return "the default: nothing else could be measured";
}

class Tuner : private Measuring {
 public:
  Tuner(const Session& session, bool gpu_alone, std::span<const FeedKind> kinds, Chosen present,
        Tuning& tuning)
      : Measuring(session, tuning.measured),
        gpu_alone_(gpu_alone),
        kinds_(kinds),
        present_(present),
        tuning_(tuning) {}

  void run() {
    result_.suite = "tune";
    result_.title = "what the conversions of these feeds take, and what they gain by";
    result_.setup = {{"CPU", session_.cpu->model()}, {"processors", std::int64_t{processors()}}};
    if (session_.gpu != nullptr) result_.setup.push_back({"GPU", session_.gpu->model()});
    turn_ = turn_seconds(session_, kSlots * kinds_.size());
    if (!choose()) return;
    for (const FeedKind& kind : kinds_) {
      if (!tune_kind(kind)) {
        tuning_.kinds.clear();
        return;
      }
    }
    std::vector<Share> shares;
    for (const TunedKind& tuned : tuning_.kinds) {
      shares.push_back({needed(tuned.kind), tuned.frames_per_second});
    }
    tuning_.load = load(shares);
  }

 private:
  static constexpr std::size_t kSlots = 24;  // turns of a kind in a round, about

  static double needed(const FeedKind& kind) { return kind.feeds * kind.rate * kind.encodes; }

  // The device.

  /// Whether one was found.
  bool choose() {
    std::vector<Share> gpu, cpu;
    std::string told, cannot;
    for (const FeedKind& kind : kinds_) {
      const auto [by_gpu, by_cpu] = compare(kind);
      if (is_over()) return false;
      if (session_.gpu != nullptr) gpu.push_back({needed(kind), by_gpu});
      if (!gpu_alone_) cpu.push_back({needed(kind), by_cpu});
      if (by_gpu > 0 && by_cpu > 0) {
        told += fmt::format("{}{:.0f} frames/s of {} on {}, {:.0f} on the CPU's {} processors",
                            told.empty() ? "" : "; ", by_gpu, work_of(kind.convert),
                            session_.gpu->name(), by_cpu, processors());
      }
      if (session_.gpu != nullptr && by_gpu == 0) {
        cannot = fmt::format("{} cannot do {}: {}", session_.gpu->name(), work_of(kind.convert),
                             gpu_problem_);
      }
    }
    const Chosen chosen = choose_device(gpu, cpu, present_);
    if (chosen == Chosen::kNeither) {
      if (result_.problems.empty()) result_.problems.push_back(gpu_problem_);
      return false;
    }
    device_ = session_on(chosen == Chosen::kOnGpu);
    tuning_.device = "cpu";
    if (on_gpu()) {
      // The first is what people mean who do not count them.
      tuning_.device = device_.gpu->name() == "cuda:0" ? "cuda" : device_.gpu->name();
    }
    if (!cannot.empty()) {  // however fast it is at the others
      tuning_.device_reason = std::move(cannot);
    } else if (!told.empty()) {
      tuning_.device_reason = std::move(told);
      if (chosen != choose_device(gpu, cpu)) {
        tuning_.device_reason += "; alike, and set already";
      } else if (on_gpu() && load(gpu) > load(cpu)) {
        tuning_.device_reason += ", which decoding and encoding need";
      }
    } else if (on_gpu()) {
      tuning_.device_reason = "the GPU alone was asked for (--device)";
    } else {
      tuning_.device_reason = session_.no_gpu;
    }
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      seen_.push_back({kinds_[i].convert, (on_gpu() ? gpu : cpu)[i].frames_per_second});
    }
    return true;
  }

  /// Frames a second of both devices, in the same rounds; 0: it cannot be had.
  std::pair<double, double> compare(const FeedKind& kind) {
    const Settings usual{kLanes, kRing, kAutoSlices};
    const Work work{kind.convert, {{many_feeds(kind, usual), shape_of(usual)}}, 0};
    const std::size_t devices = (session_.gpu != nullptr ? 1U : 0U) + (gpu_alone_ ? 0U : 1U);
    require_memory(session_, devices * frame_bytes(work, memory_of(session_)), "--size");
    const std::size_t first = result_.rows.size();
    std::vector<std::unique_ptr<StageWork>> stages;
    std::vector<Contender> contenders;
    std::vector<bool> of_gpu;
    for (const bool gpu : {true, false}) {
      if (gpu ? session_.gpu == nullptr : gpu_alone_) continue;
      try {
        stages.push_back(std::make_unique<StageWork>(session_on(gpu), work, turn_));
      } catch (const std::exception& error) {
        if (!gpu) throw;
        gpu_problem_ = error.what();  // too little memory
        continue;
      }
      contenders.push_back(stages.back()->setups().front());
      contenders.back().row.parameters.push_back({"device", gpu ? session_.gpu->name() : "cpu"});
      of_gpu.push_back(gpu);
    }
    const std::size_t problems = result_.problems.size();
    take_turns(session_, turn_, contenders, result_);
    std::pair<double, double> rates{0, 0};
    for (std::size_t i = 0; i < of_gpu.size(); ++i) {
      const Row& row = result_.rows[first + i];
      if (row.counts()) (of_gpu[i] ? rates.first : rates.second) = frames_per_second(row.samples);
    }
    // That there was no room on the GPU is no fault of the CPU's.
    if (rates.first == 0 && rates.second > 0 && !is_over()) {
      for (std::size_t i = problems; i < result_.problems.size(); ++i) {
        gpu_problem_ = result_.problems[i];
      }
      result_.problems.resize(problems);
    }
    label(first, "device");
    return rates;
  }

  // One kind of feed.

  bool tune_kind(const FeedKind& kind) {
    TunedKind tuned;
    tuned.kind = kind;
    Settings& settings = tuned.settings;
    const auto present = [&](int Settings::*setting) {
      return kind.present ? std::optional((*kind.present).*setting) : std::nullopt;
    };
    const auto lanes = choose_value(
        kind, its_feeds(kind), "lanes", lane_counts(), kLanes, present(&Settings::lanes),
        [](int count) {
          return StageShape{count, ample_ring(count), std::nullopt};
        },
        frame_times, Keep::kGoodAndFew);
    if (!lanes) return false;
    settings.lanes = lanes->value;
    tuned.lanes_reason = reason_of(*lanes, "lanes");

    const int usual_ring = ample_ring(settings.lanes);
    const auto ring = choose_value(
        kind, its_feeds(kind), "ring", {kRings.begin(), kRings.end()}, usual_ring,
        present(&Settings::ring),
        [&](int places) {
          return StageShape{settings.lanes, places, std::nullopt};
        },
        frame_times, Keep::kGoodOrMore);
    if (!ring) return false;
    settings.ring = ring->value;
    tuned.ring_reason = reason_of(*ring, "places");
    if (ring->why == Pick::Why::kDefault && usual_ring != kRing) {
      tuned.ring_reason = "two places for each lane; more are not faster by more than the noise";
    }
    if (ring->why == Pick::Why::kPresent && ring->value > usual_ring && ring->value != ring->best) {
      tuned.ring_reason = "as it is set: places that the conversion can spare wait for encoders";
    }
    return choose_slices(tuned) && find_ceiling(tuned);
  }

  /// What a setting should be, whatever it is called in `part`; nothing after a stop or a wrong
  /// result.
  std::optional<Pick> choose_value(const FeedKind& kind, int feeds, const char* part,
                                   std::vector<int> values, int usual, std::optional<int> present,
                                   const std::function<StageShape(int)>& shape,
                                   std::vector<double> (*samples_of)(const Row&), Keep keep) {
    values.push_back(usual);
    if (present) values.push_back(*present);
    const auto choose_from = [&](std::vector<int> from, const std::string& name) {
      std::ranges::sort(from);
      from.erase(std::unique(from.begin(), from.end()), from.end());
      std::vector<Setup> setups;
      for (const int value : from) setups.push_back({feeds, shape(value)});
      const std::vector<Row> rows = measure(kind, setups, name);
      std::vector<Tried> tried;
      for (std::size_t i = 0; i < from.size(); ++i) {
        tried.push_back({from[i], {}});
        const auto row = std::ranges::find_if(rows, [&](const Row& one) {
          return one.is(kStage, parameters_of(kind.convert, setups[i]));
        });
        if (row != rows.end()) tried.back().samples = samples_of(*row);
      }
      return pick(tried, usual, present, keep);
    };
    Pick picked = choose_from(values, part);
    const bool in_doubt = picked.why == Pick::Why::kFewest || picked.longer > kSameTime;
    if (!is_over() && in_doubt) {
      // The best of many is the luckiest as well: it has to win again, and by itself.
      std::vector<int> last{usual, picked.value, picked.best};
      if (present) last.push_back(*present);
      device_.rounds = kLastRounds * session_.rounds;
      picked = choose_from(last, std::string(part) + ", the last");
      device_.rounds = session_.rounds;
    }
    if (is_over()) return std::nullopt;
    return picked;
  }

  bool choose_slices(TunedKind& tuned) {
    if (!on_gpu()) {
      // What is set waits for a GPU.
      if (tuned.kind.present) tuned.settings.slices = tuned.kind.present->slices;
      tuned.slices_reason = "the CPU takes frames whole";
      return true;
    }
    double busy = 0;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      busy += needed(kinds_[i]) / seen_[i].frames_per_second;
    }
    if (busy > kFramesMeet) {
      tuned.slices_reason = fmt::format(
          "the feeds need {:.0f} % of the GPU's time: frames find others before them and go whole",
          busy * 100);
      return true;
    }
    // One place in the ring: nothing else is going on.
    const auto slices = choose_value(
        tuned.kind, 1, "slices", {kSliceCounts.begin(), kSliceCounts.end()}, kAutoSlices,
        tuned.kind.present ? std::optional(tuned.kind.present->slices) : std::nullopt,
        [&](int count) {
          return shape_of({tuned.settings.lanes, 1, count});
        },
        latencies, Keep::kGood);
    if (!slices) return false;
    tuned.settings.slices = slices->value;
    tuned.slices_reason = reason_of(*slices, "slices") + ", for a frame by itself";
    return true;
  }

  static std::vector<double> frame_times(const Row& row) { return row.samples; }
  static std::vector<double> latencies(const Row& row) {
    const auto found = std::ranges::find(row.more, kMedianLatency, &Figure::name);
    return found == row.more.end() ? std::vector<double>{} : found->samples;
  }

  /// With so many feeds that the conversion has all it can take, and then, since many feeds carry
  /// less together than a few, with as many as that seems to be enough for.
  bool find_ceiling(TunedKind& tuned) {
    int feeds = many_feeds(tuned.kind, tuned.settings);
    std::vector<Row> rows =
        measure(tuned.kind, {{feeds, shape_of(tuned.settings)}}, "ceiling", true);
    if (!take_rate(tuned, rows)) return false;
    const double of_few = tuned.frames_per_second;
    const double rate = tuned.kind.rate * tuned.kind.encodes;
    const int more = fitting(tuned.kind, tuned.settings,
                             static_cast<int>(std::min(of_few / rate, double{kMostFeeds})));
    if (more > feeds) {
      const std::vector<Row> again =
          measure(tuned.kind, {{more, shape_of(tuned.settings)}}, "ceiling, the most feeds");
      if (!take_rate(tuned, again)) return false;
      feeds = more;
      tuned.frames_per_second = std::min(tuned.frames_per_second, of_few);
    }
    const std::size_t memory = memory_of(session_);
    const Needs needs{.frames_per_second = tuned.frames_per_second,
                      .rate = rate,
                      .device_bytes = on_gpu() ? device_bytes(tuned.kind, tuned.settings.lanes) : 0,
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
    tuning_.kinds.push_back(std::move(tuned));
    return true;
  }

  /// From rows of measure(): whether there is one.
  bool take_rate(TunedKind& tuned, const std::vector<Row>& rows) {
    if (is_over()) return false;
    const auto stage = std::ranges::find(rows, kStage, &Row::name);
    if (stage == rows.end() || stage->samples.empty()) {
      result_.problems.push_back(work_of(tuned.kind.convert) +
                                 ": the recommended settings could not be measured");
      return false;
    }
    tuned.frames_per_second = frames_per_second(stage->samples);
    return true;
  }

  /// What alone reaches the least, and so holds the stage up.
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

  const bool gpu_alone_;
  const std::span<const FeedKind> kinds_;
  const Chosen present_;
  Tuning& tuning_;
  std::string gpu_problem_;
};

}  // namespace

std::string describe(const FeedKind& kind) {
  return fmt::format("{}, {:.4g} frames/s", work_of(kind.convert), kind.rate);
}

Tuning tune(const Session& session, bool gpu_alone, std::span<const FeedKind> kinds,
            Chosen present) {
  Tuning tuning;
  Tuner tuner(session, gpu_alone, kinds, present, tuning);
  try {
    tuner.run();
  } catch (const std::exception& error) {
    tuning.kinds.clear();
    tuning.measured.problems.emplace_back(error.what());
  }
  const Device* gpu = session.gpu.get();
  if (gpu != nullptr && gpu->lost()) {
    tuning.kinds.clear();
    tuning.measured.problems.push_back(gpu->name() + " was lost");
  }
  tuning.measured.interrupted = tuning.measured.interrupted || session.stopped();
  return tuning;
}

std::vector<NamedSettings> settings_of(const Tuning& tuning) {
  std::vector<NamedSettings> list;
  for (const TunedKind& tuned : tuning.kinds) {
    if (tuned.kind.names.empty()) list.push_back({"", tuned.settings});
    for (const std::string& name : tuned.kind.names) list.push_back({name, tuned.settings});
  }
  return list;
}

}  // namespace framelane::bench
