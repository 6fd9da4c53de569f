#include "bench/suites/tune.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "bench/suites/stage_work.hpp"
#include "pipeline/processors.hpp"

namespace framelane::bench {
namespace {

constexpr std::array kLaneCounts{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr int kMostLanesOfGpu = 8;
/// Not fewer than the default: those that are not needed for speed wait for slow encoders.
constexpr std::array kRings{kRing, 16, 32};
constexpr int kMostRing = 256;
constexpr std::array kSliceCounts{kAutoSlices, 1, 2, 4, 8, 16};
/// Of a device's time: where feeds need more of it, their frames meet.
constexpr double kFramesMeet = 0.5;
/// The last contenders have so many times the rounds.
constexpr int kLastRounds = 3;

std::string work_of(const Conversion& convert) {
  return fmt::format("{}x{} {}", convert.width, convert.height, formats_of(convert));
}

StageShape shape_of(const Settings& settings) {
  return {settings.lanes, settings.ring,
          settings.slices == kAutoSlices ? std::nullopt : std::optional(settings.slices)};
}

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

std::size_t device_bytes([[maybe_unused]] const FeedKind& kind, [[maybe_unused]] int lanes) {
#ifdef FRAMELANE_WITH_CUDA
  const std::vector<Conversion> conversions(static_cast<std::size_t>(kind.encodes), kind.convert);
  return plan_bytes(conversions, FrameMemory::kHost, static_cast<std::size_t>(lanes));
#else
  return 0;
#endif
}

std::size_t free_device_bytes([[maybe_unused]] const Session& session) {
  std::size_t free = 0;
#ifdef FRAMELANE_WITH_CUDA
  std::size_t total = 0;
  context_of(session).make_current();
  cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
#endif
  return free;
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

class Tuner {
 public:
  Tuner(const Session& session, bool gpu_alone, std::span<const FeedKind> kinds, Tuning& tuning)
      : session_(session),
        gpu_alone_(gpu_alone),
        kinds_(kinds),
        tuning_(tuning),
        result_(tuning.measured) {}

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

  /// Of what has been recommended.
  void check() {
    device_ = session_on(tuning_.device != "cpu");
    for (const TunedKind& tuned : tuning_.kinds) {
      seen_.push_back({tuned.kind.convert, tuned.frames_per_second});
    }
    for (const TunedKind& tuned : tuning_.kinds) {
      if (!check(tuned)) return;
    }
  }

 private:
  /// The settings that a search of everything goes through.
  std::vector<Setup> grid(const TunedKind& tuned) const {
    std::vector<Setup> setups;
    const int feeds = its_feeds(tuned.kind);
    for (const int lanes : lane_counts()) {
      for (const int ring : kRings) {
        if (!on_gpu()) {
          setups.push_back({feeds, {lanes, ring, std::nullopt}});
          continue;
        }
        for (const int slices : {kAutoSlices, 1, 4}) {
          setups.push_back({feeds, shape_of({lanes, ring, slices})});
        }
      }
    }
    const StageShape ours = shape_of(tuned.settings);
    const bool there = std::ranges::any_of(setups, [&](const Setup& setup) {
      return setup.shape.lanes == ours.lanes && setup.shape.ring == ours.ring &&
             setup.shape.slices == ours.slices;
    });
    if (!there) setups.push_back({feeds, ours});
    return setups;
  }

  static constexpr std::size_t kSlots = 24;  // turns of a kind in a round, about

  static double needed(const FeedKind& kind) { return kind.feeds * kind.rate * kind.encodes; }
  bool on_gpu() const { return device_.gpu != nullptr; }
  Session session_on(bool gpu) const {
    Session session = session_;
    if (!gpu) session.gpu = nullptr;
    return session;
  }

  std::vector<int> lane_counts() const {
    const int most = on_gpu() ? kMostLanesOfGpu : std::max(kLanes + 1, processors());
    std::vector<int> counts;
    for (const int count : kLaneCounts) {
      if (count <= most) counts.push_back(count);
    }
    return counts;
  }

  /// Whether something went wrong that leaves nothing to recommend.
  bool is_over() const {
    if (result_.interrupted || session_.stopped()) return true;
    return std::ranges::any_of(result_.rows,
                               [](const Row& row) { return row.checked == Checked::kWrong; });
  }

  /// Rows of a part of the measuring have its name and the device's.
  void label(std::size_t first, const std::string& part) {
    for (std::size_t i = first; i < result_.rows.size(); ++i) {
      result_.rows[i].parameters.push_back({"part", part});
    }
  }

  /// One row for each setup, in order; where there was no room for it, without samples. Throws what
  /// the device says.
  std::vector<Row> measure(const FeedKind& kind, const std::vector<Setup>& setups,
                           const std::string& part, bool with_ceilings = false) {
    Work work{kind.convert, setups, 0};
    drop_the_largest(device_, work, result_);
    StageWork stage(device_, work, turn_of(kind));
    std::vector<Contender> contenders = with_ceilings ? stage.contenders() : stage.setups();
#ifdef FRAMELANE_WITH_CUDA
    if (with_ceilings && on_gpu()) contenders.push_back(stage.kernels());
#endif
    const std::size_t first = result_.rows.size();
    const std::size_t problems = result_.problems.size();
    take_turns(device_, turn_of(kind), contenders, result_);
    std::vector<Row> rows(result_.rows.begin() + static_cast<std::ptrdiff_t>(first),
                          result_.rows.end());
    // A setting for which there is no room is none to recommend, and no fault.
    if (!is_over()) {
      std::move(result_.problems.begin() + static_cast<std::ptrdiff_t>(problems),
                result_.problems.end(), std::back_inserter(result_.left_out));
      result_.problems.resize(problems);
    }
    label(first, part);
    return rows;
  }

  /// Long enough for more frames than come together.
  double turn_of(const FeedKind& kind) const {
    constexpr double kFrames = 30;
    const auto seen = std::ranges::find(seen_, kind.convert, &Seen::convert);
    if (turn_ == 0 || seen == seen_.end()) return turn_;
    return std::max(turn_, kFrames / seen->frames_per_second);
  }

  /// So many feeds as are wanted, or fewer, where there is not room for them.
  int fitting(const FeedKind& kind, const Settings& settings, int feeds) const {
    constexpr int kMost = 64;
    feeds = std::min(feeds, kMost);
    const std::size_t host = (session_.memory > 0 ? session_.memory : machine_memory()) / 4;
    const std::size_t device = session_.gpu != nullptr ? free_device_bytes(session_) / 2 : 0;
    while (feeds > 1 &&
           (target_bytes(kind.convert, {feeds, shape_of(settings)}) > host ||
            (session_.gpu != nullptr &&
             static_cast<std::size_t>(feeds) * device_bytes(kind, settings.lanes) > device))) {
      feeds /= 2;
    }
    return feeds;
  }
  /// Enough to keep all processors at work, or the GPU.
  int many_feeds(const FeedKind& kind, const Settings& settings) const {
    constexpr int kEnough = 4;
    return fitting(kind, settings, std::max({kind.feeds, processors() / kLanes + 1, kEnough}));
  }
  /// Those there are, as far as all of their settings find room.
  int its_feeds(const FeedKind& kind) const {
    return fitting(kind, {lane_counts().back(), kRings.back(), kAutoSlices}, kind.feeds);
  }

  // The device.

  /// Whether one was found.
  bool choose() {
    std::vector<Share> gpu, cpu;
    std::string told;
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
    }
    const Chosen chosen = choose_device(gpu, cpu);
    if (chosen == Chosen::kNeither) {
      if (result_.problems.empty()) result_.problems.push_back(gpu_problem_);
      return false;
    }
    device_ = session_on(chosen == Chosen::kGpu);
    tuning_.device = "cpu";
    if (on_gpu()) {
      // The first is what people mean who do not count them.
      tuning_.device = device_.gpu->name() == "cuda:0" ? "cuda" : device_.gpu->name();
    }
    if (!told.empty()) {
      tuning_.device_reason = std::move(told);
    } else if (on_gpu()) {
      tuning_.device_reason = "the GPU alone was asked for (--device)";
    } else {
      tuning_.device_reason = session_.gpu == nullptr
                                  ? session_.no_gpu
                                  : session_.gpu->name() + " cannot do it: " + gpu_problem_;
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
        frame_times);
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
        frame_times);
    if (!ring) return false;
    settings.ring = ring->value;
    tuned.ring_reason = reason_of(*ring, "places");
    if (ring->why == Pick::Why::kDefault && usual_ring != kRing) {
      tuned.ring_reason = "two places for each lane; more are not faster by more than the noise";
    }
    return choose_slices(tuned) && find_ceiling(tuned);
  }

  /// What a setting should be, whatever it is called in `part`; nothing after a stop or a wrong
  /// result.
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
          return one.is(kStage, parameters_of(kind.convert, setups[i]));
        });
        if (row != rows.end()) tried.back().samples = samples_of(*row);
      }
      return pick(tried, usual, present);
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

  bool find_ceiling(TunedKind& tuned) {
    const int feeds = many_feeds(tuned.kind, tuned.settings);
    const std::vector<Row> rows =
        measure(tuned.kind, {{feeds, shape_of(tuned.settings)}}, "ceiling", true);
    if (is_over()) return false;
    const auto stage = std::ranges::find(rows, kStage, &Row::name);
    if (stage == rows.end() || stage->samples.empty()) {
      result_.problems.push_back(work_of(tuned.kind.convert) +
                                 ": the recommended settings could not be measured");
      return false;
    }
    tuned.frames_per_second = frames_per_second(stage->samples);
    const std::size_t memory = session_.memory > 0 ? session_.memory : machine_memory();
    const Needs needs{.frames_per_second = tuned.frames_per_second,
                      .rate = tuned.kind.rate * tuned.kind.encodes,
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

  // The check.

  bool check(const TunedKind& tuned) {
    const std::vector<Setup> setups = grid(tuned);
    turn_ = turn_seconds(session_, setups.size());
    std::vector<Row> rows = measure(tuned.kind, setups, "every setting");
    if (is_over()) return false;
    const Setup recommended{its_feeds(tuned.kind), shape_of(tuned.settings)};
    const std::vector<Parameter> ours = parameters_of(tuned.kind.convert, recommended);
    std::erase_if(rows, [](const Row& row) { return row.samples.empty(); });
    std::ranges::sort(rows, {}, &Row::median);
    // The best of many is also the luckiest: what it is worth shows beside ours alone.
    constexpr std::size_t kFinalists = 3;
    std::vector<Setup> finalists{recommended};
    for (const Row& row : rows) {
      if (finalists.size() > kFinalists) break;
      if (row.is(kStage, ours)) continue;
      const auto setup = std::ranges::find_if(setups, [&](const Setup& one) {
        return row.is(kStage, parameters_of(tuned.kind.convert, one));
      });
      finalists.push_back(*setup);
    }
    device_.rounds = kLastRounds * session_.rounds;
    turn_ = turn_seconds(device_, finalists.size());
    std::vector<Row> last = measure(tuned.kind, finalists, "the best of every setting");
    device_.rounds = session_.rounds;
    if (is_over()) return false;
    const auto own =
        std::ranges::find_if(last, [&](const Row& row) { return row.is(kStage, ours); });
    if (own == last.end() || own->samples.empty()) {
      result_.problems.push_back(describe(tuned.kind) +
                                 ": the recommended setting is not measured");
      return true;
    }
    const Row* best = &*own;
    for (const Row& row : last) {
      if (!row.samples.empty() && row.median() < best->median()) best = &row;
    }
    const double longer = times_longer(own->samples, best->samples);
    const std::string sentence = fmt::format(
        "{}: of {} settings the best is {}; the recommended one ({}) takes {:.3f} times as long",
        work_of(tuned.kind.convert), rows.size(), shape_text(*best), shape_text(*own), longer);
    result_.verdict.push_back(sentence);
    if (longer > kSameTime) {
      result_.problems.push_back(fmt::format("{}, more than {}", sentence, kSameTime));
    }
    return true;
  }

  static std::string shape_text(const Row& row) {
    std::string text;
    for (const Parameter& parameter : row.parameters) {
      if (parameter.name != "lanes" && parameter.name != "ring" && parameter.name != "slices") {
        continue;
      }
      text += (text.empty() ? "" : ", ") + parameter.name + ' ' + to_string(parameter);
    }
    return text;
  }

  struct Seen {
    Conversion convert;
    double frames_per_second;
  };

  const Session& session_;
  const bool gpu_alone_;
  const std::span<const FeedKind> kinds_;
  Tuning& tuning_;
  Result& result_;
  Session device_;  // session_ with the chosen device alone
  double turn_ = 0;
  std::vector<Seen> seen_;
  std::string gpu_problem_;
};

}  // namespace

std::string describe(const FeedKind& kind) {
  return fmt::format("{}, {:.4g} frames/s", work_of(kind.convert), kind.rate);
}

Tuning tune(const Session& session, bool gpu_alone, std::span<const FeedKind> kinds) {
  Tuning tuning;
  Tuner tuner(session, gpu_alone, kinds, tuning);
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

void check_tuning(const Session& session, Tuning& tuning) {
  try {
    Tuner(session, false, {}, tuning).check();
  } catch (const std::exception& error) {
    tuning.measured.problems.emplace_back(error.what());
  }
  tuning.measured.interrupted = tuning.measured.interrupted || session.stopped();
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
