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
/// If feeds need more than this share of a device's time, frames of different feeds meet often.
constexpr double kFramesMeet = 0.5;

/// Two places for each lane: one job is on its way while the next is prepared.
int ample_ring(int lanes) { return std::min(std::max(kRing, 2 * lanes), kMostRing); }

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
  static constexpr std::size_t kSlots = 24;  // about how many turns a kind has in a round

  static double needed(const FeedKind& kind) { return kind.feeds * kind.rate; }

  // The device.

  /// Chooses the device. False if there is none, or after a stop.
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
                            told.empty() ? "" : "; ", by_gpu, work_of(kind), session_.gpu->name(),
                            by_cpu, processors());
      }
      if (session_.gpu != nullptr && by_gpu == 0) {
        cannot =
            fmt::format("{} cannot do {}: {}", session_.gpu->name(), work_of(kind), gpu_problem_);
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
      // cuda:0 is written as people usually write it.
      tuning_.device = device_.gpu->name() == "cuda:0" ? "cuda" : device_.gpu->name();
    }
    if (!cannot.empty()) {  // one kind that it cannot do decides
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
      seen_.push_back({kinds_[i].conversions, (on_gpu() ? gpu : cpu)[i].frames_per_second});
    }
    return true;
  }

  /// Frames a second of the GPU and of the CPU, measured in the same rounds. 0: it cannot do this.
  std::pair<double, double> compare(const FeedKind& kind) {
    const Settings usual{kLanes, kRing, kAutoSlices};
    const Work work{kind.conversions, {{many_feeds(kind, usual), shape_of(usual)}}};
    require_memory(session_, frame_bytes(work, memory_of(session_)), "--size");
    const std::size_t first = result_.rows.size();
    std::vector<std::unique_ptr<StageWork>> stages;
    std::vector<Contender> contenders;
    std::vector<bool> of_gpu;
    for (const bool gpu : {true, false}) {
      if (gpu ? session_.gpu == nullptr : gpu_alone_) continue;
      try {
        stages.push_back(
            std::make_unique<StageWork>(session_on(gpu), work, turn_, frames_for(kind)));
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
    // That there was no room on the GPU is no problem if the CPU can do it.
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
    const auto lanes = choose_value(
        kind, its_feeds(kind), "lanes", lane_counts(), kLanes,
        kind.present ? std::optional(kind.present->lanes) : std::nullopt,
        [](int count) {
          return StageShape{count, ample_ring(count), std::nullopt};
        },
        frame_times);
    if (!lanes) return false;
    tuned.settings.lanes = lanes->value;
    tuned.lanes_reason = reason_of(*lanes, "lanes");

    if (!choose_ring(tuned) || !choose_slices(tuned)) return false;
    if (!find_ceiling(*this, tuned)) return false;
    tuning_.kinds.push_back(std::move(tuned));
    return true;
  }

  bool choose_ring(TunedKind& tuned) {
    const Settings& settings = tuned.settings;
    const int usual = ample_ring(settings.lanes);
    const std::optional<int> present =
        tuned.kind.present ? std::optional(tuned.kind.present->ring) : std::nullopt;
    if (present > usual) {
      tuned.settings.ring = *present;
      tuned.ring_reason = "as it is set: places that the conversion can spare wait for encoders";
      return true;
    }
    const auto ring = choose_value(
        tuned.kind, its_feeds(tuned.kind), "ring", {kRings.begin(), kRings.end()}, usual, present,
        [&](int places) {
          return StageShape{settings.lanes, places, std::nullopt};
        },
        frame_times);
    if (!ring) return false;
    tuned.settings.ring = ring->value;
    tuned.ring_reason = reason_of(*ring, "places");
    if (ring->why == Pick::Why::kDefault && usual != kRing) {
      tuned.ring_reason = "two places for each lane; more are not faster by more than the noise";
    }
    return true;
  }

  /// Chooses the value of one setting, which `part` names. Nothing after a stop or a wrong result.
  std::optional<Pick> choose_value(const FeedKind& kind, int feeds, const char* part,
                                   std::vector<int> values, int usual, std::optional<int> present,
                                   const std::function<StageShape(int)>& shape,
                                   std::vector<double> (*samples_of)(const Row&)) {
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
          return one.is(kStage, parameters_of(kind.conversions, setups[i]));
        });
        if (row != rows.end()) tried.back().samples = samples_of(*row);
      }
      return pick(tried, usual, present);
    };
    Pick picked = choose_from(values, part);
    const bool in_doubt = picked.why == Pick::Why::kFewest || picked.longer > kSameTime;
    if (!is_over() && in_doubt) {
      // The best of many may only have been lucky, so it has to win again, against few.
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
      // A value that is set stays: it may be meant for runs with a GPU.
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
    // With one place in the ring, one frame is under way at a time.
    const auto slices = choose_value(
        tuned.kind, 1, "slices", {kSliceCounts.begin(), kSliceCounts.end()}, kAutoSlices,
        tuned.kind.present ? std::optional(tuned.kind.present->slices) : std::nullopt,
        [&](int count) {
          return shape_of({tuned.settings.lanes, 1, count});
        },
        latencies);
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

  const bool gpu_alone_;
  const std::span<const FeedKind> kinds_;
  const Chosen present_;
  Tuning& tuning_;
  std::string gpu_problem_;
};

}  // namespace

std::string describe(const FeedKind& kind) {
  return fmt::format("{}, {:.4g} frames/s", work_of(kind), kind.rate);
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
    const FeedKind& kind = tuned.kind;
    if (kind.names.empty()) list.push_back({"", tuned.settings});
    for (std::size_t i = 0; i < kind.names.size(); ++i) {
      list.push_back(
          {kind.names[i], tuned.settings, i < kind.own.size() ? kind.own[i] : OwnSettings{}});
    }
  }
  return list;
}

}  // namespace framelane::bench
