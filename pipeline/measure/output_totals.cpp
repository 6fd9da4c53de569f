#include "pipeline/measure/output_totals.hpp"

#include <memory>
#include <utility>

namespace framelane {
namespace {

int badness(FeedState state) {
  switch (state) {
    case FeedState::kEnded:
      return 0;
    case FeedState::kRunning:
      return 1;
    case FeedState::kConnecting:
      return 2;
    case FeedState::kBackoff:
      return 3;
    case FeedState::kFailed:
      return 4;
  }
  return 0;
}

void add_faults(FaultCount& sum, FaultCount faults) {
  const std::uint64_t count = sum.count + faults.count;
  if (faults.at > sum.at) sum = std::move(faults);
  sum.count = count;
}

std::uint64_t packets_lost(const OutputStats& output) {
  std::uint64_t lost = output.dependents_dropped;
  for (const PacketDrop reason :
       {PacketDrop::kQueueFull, PacketDrop::kWriteFailed, PacketDrop::kDiskFull}) {
    lost += output.packets_dropped[index_of(reason)];
  }
  return lost;
}

template <typename Sums, typename Counts>
void add_counts(Sums& sums, const Counts& counts) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += counts[i];
}

}  // namespace

std::vector<OutputTotals> output_totals(const FeedStats& stats) {
  std::vector<OutputTotals> all;
  for (const std::shared_ptr<OutputStats>& one : stats.outputs()) {
    const OutputStats& output = *one;
    if (all.empty() || all.back().name != output.name) all.push_back({.name = output.name});
    OutputTotals& totals = all.back();
    totals.up = totals.up && output.up;
    totals.paused = totals.paused || output.paused;
    add_faults(totals.faults, output.faults());  // before the state that the next fault changes
    auto [state, reason] = output.state();
    const int worse = badness(state) - badness(totals.state);
    if (worse > 0 || (worse == 0 && totals.reason.empty())) {
      totals.state = state;
      totals.reason = std::move(reason);
    }
    if (totals.retention_reason.empty()) totals.retention_reason = output.retention->reason();
    totals.bytes += output.bytes;
    totals.queue_packets += output.queue_packets;
    add_counts(totals.packets_dropped, output.packets_dropped);
    totals.packets_lost += packets_lost(output);
    add_counts(totals.reconnects, output.reconnects);
    add_counts(totals.retention_faults, output.retention->counts());
  }
  return all;
}

}  // namespace framelane
