#include <fmt/core.h>

#include <algorithm>
#include <exception>

#include "tune/measuring.hpp"

namespace framelane::bench {
namespace {

class Check : private Measuring {
 public:
  Check(const Session& session, Tuning& tuning)
      : Measuring(session, tuning.measured), tuning_(tuning) {
    device_ = session_on(tuning_.device != "cpu");
    for (const TunedKind& tuned : tuning_.kinds) {
      seen_.push_back({tuned.kind.conversions, tuned.frames_per_second});
    }
  }

  void run() {
    for (const TunedKind& tuned : tuning_.kinds) {
      if (!check(tuned)) return;
    }
  }

 private:
  /// All combinations to measure; with fewer counts of slices than tune itself tries.
  std::vector<Setup> grid(const TunedKind& tuned) const {
    std::vector<Setup> setups;
    const int feeds = its_feeds(tuned.kind);
    // tune never makes a ring smaller that is set, so smaller ones are no alternative.
    const int least = tuned.kind.present ? tuned.kind.present->ring : 0;
    for (const int lanes : lane_counts()) {
      for (const int ring : kRings) {
        if (ring < least) continue;
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

  bool check(const TunedKind& tuned) {
    const std::vector<Setup> setups = grid(tuned);
    turn_ = turn_seconds(session_, setups.size());
    std::vector<Row> rows = measure(tuned.kind, setups, "every setting");
    if (is_over()) return false;
    const Setup recommended{its_feeds(tuned.kind), shape_of(tuned.settings)};
    const std::vector<Parameter> ours = parameters_of(tuned.kind.conversions, recommended);
    std::erase_if(rows, [](const Row& row) { return row.samples.empty(); });
    std::ranges::sort(rows, {}, &Row::median);
    // The best of many may only have been lucky. So the best few are measured again, beside the
    // recommended one.
    constexpr std::size_t kFinalists = 3;
    std::vector<Setup> finalists{recommended};
    for (const Row& row : rows) {
      if (finalists.size() > kFinalists) break;
      if (row.is(kStage, ours)) continue;
      const auto setup = std::ranges::find_if(setups, [&](const Setup& one) {
        return row.is(kStage, parameters_of(tuned.kind.conversions, one));
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
    std::vector<std::vector<double>> samples;
    for (const Row& row : last) samples.push_back(row.samples);
    const Standing found = standing(samples, static_cast<std::size_t>(own - last.begin()));
    const std::string sentence = fmt::format(
        "{}: of {} settings the best is {}; the recommended one ({}) takes {:.3f} times as long",
        work_of(tuned.kind), rows.size(), shape_text(last[found.best]), shape_text(*own),
        found.longer);
    result_.verdict.push_back(sentence);
    if (!found.is_as_good) {
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

  Tuning& tuning_;
};

}  // namespace

void check_tuning(const Session& session, Tuning& tuning) {
  try {
    Check(session, tuning).run();
  } catch (const std::exception& error) {
    tuning.measured.problems.emplace_back(error.what());
  }
  tuning.measured.interrupted = tuning.measured.interrupted || session.stopped();
}

}  // namespace framelane::bench
