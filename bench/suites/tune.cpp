#include "bench/suites/tune.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <memory>
#include <utility>

#include "bench/suites/stage_work.hpp"
#include "pipeline/processors.hpp"

namespace framelane::bench {
namespace {

constexpr std::array kLaneCounts{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr int kMostLanesOfGpu = 8;
constexpr std::array kRings{4, 8, 16, 32};
constexpr int kMostRing = 256;
constexpr std::array kSliceCounts{kAutoSlices, 1, 2, 4, 8, 16};
/// Of a device's time: where feeds need more of it, their frames meet.
constexpr double kFramesMeet = 0.5;

std::string formats_of(const Conversion& convert) {
  return fmt::format("{}x{} {} to {}", convert.width, convert.height, info(convert.source).name,
                     info(convert.target).name);
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

std::string reason_of(const Pick& pick, const char* many) {
  const auto percent = [](double longer) { return fmt::format("{:.1f} %", (longer - 1) * 100); };
  const std::string best = slices_text(pick.best);
  switch (pick.why) {
    case Pick::Why::kDefault:
      if (pick.best == pick.value) return "the default, and the fastest";
      return fmt::format("the default; the fastest, {}, wins {} by it, which is no more than noise",
                         best, percent(std::max(pick.longer, 1.0)));
    case Pick::Why::kPresent:
      return fmt::format(
          "as it is set; as good as the fastest, {}, and the default takes {} longer", best,
          percent(pick.default_longer));
    case Pick::Why::kFewest:
      return fmt::format(
          "the fewest {} that are as good as the fastest, {}; the default takes {} "
          "longer",
          many, best, percent(pick.default_longer));
    case Pick::Why::kOnlyOne:
      break;
  }
  return "the default: nothing else was measured";
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
    for (const int lanes : lane_counts()) {
      for (const int ring : {2, 4, 8, 16, 32}) {
        if (!on_gpu()) {
          setups.push_back({tuned.kind.feeds, {lanes, ring, std::nullopt}});
          continue;
        }
        for (const int slices : {kAutoSlices, 1, 4, 16}) {
          setups.push_back({tuned.kind.feeds, shape_of({lanes, ring, slices})});
        }
      }
    }
    const Setup ours{tuned.kind.feeds, shape_of(tuned.settings)};
    const bool there = std::ranges::any_of(setups, [&](const Setup& setup) {
      return parameters(tuned.kind, setup) == parameters(tuned.kind, ours);
    });
    if (!there) setups.push_back(ours);
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
  static std::vector<Parameter> parameters(const FeedKind& kind, const Setup& setup) {
    return parameters_of(kind.convert, setup);
  }

  std::vector<int> lane_counts() const {
    const int most = on_gpu() ? kMostLanesOfGpu : std::max(kLanes + 1, 2 * processors());
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

  /// Enough to keep all processors at work, or the GPU, where there is room for so many.
  int many_feeds(const FeedKind& kind, const Settings& settings) const {
    constexpr int kEnough = 4;
    constexpr int kMost = 64;
    int feeds = std::clamp(std::max(kind.feeds, processors() / kLanes + 1), kEnough, kMost);
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
                            told.empty() ? "" : "; ", by_gpu, formats_of(kind.convert),
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
    TunedKind tuned{.kind = kind};
    Settings& settings = tuned.settings;
    const auto lanes =
        pick_one(kind, "lanes", lane_counts(), kLanes,
                 kind.present ? std::optional(kind.present->lanes) : std::nullopt, [](int count) {
                   return StageShape{count, ample_ring(count), std::nullopt};
                 });
    if (!lanes) return false;
    settings.lanes = lanes->value;
    tuned.lanes_reason = reason_of(*lanes, "lanes");

    const int usual_ring = ample_ring(settings.lanes);
    std::vector<int> rings(kRings.begin(), kRings.end());
    rings.push_back(usual_ring);
    const auto ring =
        pick_one(kind, "ring", rings, usual_ring,
                 kind.present ? std::optional(kind.present->ring) : std::nullopt, [&](int places) {
                   return StageShape{settings.lanes, places, std::nullopt};
                 });
    if (!ring) return false;
    settings.ring = ring->value;
    tuned.ring_reason = reason_of(*ring, "places");
    if (ring->why == Pick::Why::kDefault && usual_ring != kRing) {
      tuned.ring_reason = fmt::format(
          "two places for each of {} lanes; no other is faster by more "
          "than noise",
          settings.lanes);
    }
    return choose_slices(tuned) && find_ceiling(tuned);
  }

  template <typename Shape>
  std::optional<Pick> pick_one(const FeedKind& kind, const char* part, std::vector<int> values,
                               int usual, std::optional<int> present, Shape shape) {
    values.push_back(usual);
    if (present) values.push_back(*present);
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<Setup> setups;
    for (const int value : values) setups.push_back({kind.feeds, shape(value)});
    const std::vector<Row> rows = measure(kind, setups, part);
    if (is_over()) return std::nullopt;
    std::vector<Tried> tried;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto row = std::ranges::find_if(
          rows, [&](const Row& one) { return one.is(kStage, parameters(kind, setups[i])); });
      tried.push_back({values[i], row == rows.end() ? std::vector<double>{} : row->samples});
    }
    return pick(tried, usual, present);
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
    std::vector<Setup> setups;
    for (const int slices : kSliceCounts) {
      setups.push_back({1, shape_of({tuned.settings.lanes, 1, slices})});
    }
    const std::vector<Row> rows = measure(tuned.kind, setups, "slices");
    if (is_over()) return false;
    std::vector<Tried> tried;
    for (std::size_t i = 0; i < setups.size(); ++i) {
      tried.push_back({kSliceCounts[i], {}});
      const auto row = std::ranges::find_if(
          rows, [&](const Row& one) { return one.is(kStage, parameters(tuned.kind, setups[i])); });
      if (row != rows.end()) tried.back().samples = latencies(*row);
    }
    const Pick picked =
        pick(tried, kAutoSlices,
             tuned.kind.present ? std::optional(tuned.kind.present->slices) : std::nullopt);
    tuned.settings.slices = picked.value;
    tuned.slices_reason = reason_of(picked, "slices");
    const auto found = std::ranges::find(tried, picked.value, &Tried::value);
    if (!found->samples.empty()) {
      tuned.slices_reason += fmt::format("; a frame by itself is back after {:.2f} ms",
                                         percentile(found->samples, 0.5));
    }
    return true;
  }

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
      result_.problems.push_back(formats_of(tuned.kind.convert) +
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
            "; the limit is memory: {:.0f} MiB of frames a feed, half of what there is {:.0f}",
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
    const int rounds = session_.rounds;
    turn_ = turn_seconds(session_, setups.size());
    std::vector<Row> rows = measure(tuned.kind, setups, "every setting");
    if (is_over()) return false;
    const std::vector<Parameter> ours =
        parameters(tuned.kind, {tuned.kind.feeds, shape_of(tuned.settings)});
    std::erase_if(rows, [](const Row& row) { return row.samples.empty(); });
    std::ranges::sort(rows, {}, &Row::median);
    // The best of many is also the luckiest: what it is worth shows beside ours alone.
    constexpr std::size_t kFinalists = 3;
    std::vector<Setup> finalists{{tuned.kind.feeds, shape_of(tuned.settings)}};
    for (const Row& row : rows) {
      if (finalists.size() > kFinalists) break;
      if (row.is(kStage, ours)) continue;
      const auto setup = std::ranges::find_if(
          setups, [&](const Setup& one) { return row.is(kStage, parameters(tuned.kind, one)); });
      finalists.push_back(*setup);
    }
    device_.rounds = 3 * rounds;
    std::vector<Row> last = measure(tuned.kind, finalists, "the best of every setting");
    device_.rounds = rounds;
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
        formats_of(tuned.kind.convert), rows.size(), shape_text(*best), shape_text(*own), longer);
    result_.verdict.push_back(sentence);
    if (longer > 1.02) result_.problems.push_back(sentence + ", more than 1.02");
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
  return fmt::format("{}, {:.4g} frames/s", formats_of(kind.convert), kind.rate);
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
