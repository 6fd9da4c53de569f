#include "bench/experiments/overlap_verdict.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bench/experiments/issue_order.hpp"
#include "bench/harness/ceilings.hpp"

namespace framelane::bench {
namespace {

/// Smaller differences are not worth changing a program for.
constexpr double kMatters = 1.03;

/// Whether one is slower by more than that, and not only by noise.
bool is_slower(const Row& one, const Row& other) {
  return one.median() > kMatters * other.median() && one.percentile(0.1) > other.percentile(0.9);
}
bool differ(const Row& one, const Row& other) {
  return is_slower(one, other) || is_slower(other, one);
}

double ratio(const Row& one, const Row& other) { return one.median() / other.median(); }

struct Pair {
  const Row* depth;
  const Row* breadth;
  /// The slower one's time relative to the faster one's.
  double apart() const { return std::max(ratio(*depth, *breadth), ratio(*breadth, *depth)); }
};

std::vector<Pair> pairs_of(const Result& result) {
  std::vector<Pair> pairs;
  for (const Row& depth : result.rows) {
    if (!depth.counts() ||
        !depth.is(kInChunks, {{kMemory, "pinned"}, {kOrder, name_of(IssueOrder::kDepthFirst)}})) {
      continue;
    }
    const Row* breadth = result.measured(kInChunks, {{kMemory, "pinned"},
                                                     {kOrder, name_of(IssueOrder::kBreadthFirst)},
                                                     parameter(depth.parameters, kChunk),
                                                     parameter(depth.parameters, kOverStreams)});
    if (breadth != nullptr) pairs.push_back({&depth, breadth});
  }
  return pairs;
}

}  // namespace

std::string judge_copy_engines(int engines, const Result& result) {
  std::string sentence =
      engines == 0 ? "no copy engine: nothing is copied while a kernel runs"
      : engines == 1
          ? "1 copy engine: copies run beside a kernel, but up and down one after the other"
          : fmt::format("{} copy engines: copies up, copies down and a kernel run at once",
                        engines);
  const Row* up = result.measured(kUploadAlone);
  const Row* down = result.measured(kDownloadAlone);
  const Row* both = result.measured(kBothWaysAtOnce);
  if (up == nullptr || down == nullptr || both == nullptr) return sentence;
  return sentence + fmt::format(
                        "; both ways at once take {:.2f} times what the longer way alone "
                        "takes",
                        both->median() / std::max(up->median(), down->median()));
}

std::string judge_order(const Result& result) {
  const std::vector<Pair> pairs = pairs_of(result);
  if (pairs.empty()) return {};
  const auto median = [](const Row* row) { return row->median(); };
  const Row& depth =
      *std::ranges::min(pairs, {}, [&](const Pair& p) { return median(p.depth); }).depth;
  const Row& breadth =
      *std::ranges::min(pairs, {}, [&](const Pair& p) { return median(p.breadth); }).breadth;
  const bool matters = differ(depth, breadth);
  std::string sentence =
      matters ? fmt::format(
                    "the order of issue matters: at its best {} takes {:.2f} times what {} "
                    "takes at its best",
                    name_of(IssueOrder::kBreadthFirst), ratio(breadth, depth),
                    name_of(IssueOrder::kDepthFirst))
              : fmt::format(
                    "the order of issue does not matter where chunk and streams are chosen "
                    "well: the best of both orders cannot be told apart ({:.2f} times)",
                    ratio(breadth, depth));
  const double percent = 100 * (kMatters - 1);
  std::vector<Pair> apart = pairs;
  std::erase_if(apart, [](const Pair& pair) { return !differ(*pair.depth, *pair.breadth); });
  if (apart.empty()) {
    return sentence + fmt::format(
                          "; in none of {} pairs of chunk and streams does it make a difference "
                          "of more than {:.0f} % that is not within the noise",
                          pairs.size(), percent);
  }
  const Pair worst = std::ranges::max(apart, {}, &Pair::apart);
  return sentence +
         fmt::format(
             "; in {} of {} pairs of chunk and streams it makes a difference of more "
             "than {:.0f} % that is not noise (worst: {} KiB over {} streams, {} {:.2f} times {})",
             apart.size(), pairs.size(), percent,
             to_string(parameter(worst.depth->parameters, kChunk)),
             to_string(parameter(worst.depth->parameters, kOverStreams)),
             name_of(IssueOrder::kBreadthFirst), ratio(*worst.breadth, *worst.depth),
             name_of(IssueOrder::kDepthFirst));
}

}  // namespace framelane::bench
