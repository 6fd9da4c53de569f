#include "daemon/bottleneck.hpp"

#include <algorithm>
#include <utility>

#include "pipeline/base/processors.hpp"

namespace framelane {

StepLoads step_loads(const FeedView& feed) {
  const FeedStats& stats = *feed.stats;
  StepLoads loads{};
  loads[index_of(Bottleneck::kDecode)] = stats.decode_busy.recent_ratio();
  double& h2d = loads[index_of(Bottleneck::kH2d)];
  double& d2h = loads[index_of(Bottleneck::kD2h)];
  double& kernel = loads[index_of(Bottleneck::kKernel)];
  // On the CPU lanes convert at the same time, as many as there are processors. On a GPU they take
  // turns.
  const auto lanes = stats.lanes();
  const bool on_cpu = stats.status().device == "cpu";
  const double at_once = on_cpu ? std::min(static_cast<int>(lanes.size()), processors()) : 1;
  for (const auto& lane : lanes) {
    h2d = std::min(h2d + lane->busy[Engine::kH2d].recent_ratio(), 1.0);
    d2h = std::min(d2h + lane->busy[Engine::kD2h].recent_ratio(), 1.0);
    kernel = std::min(kernel + lane->busy[Engine::kKernel].recent_ratio() / at_once, 1.0);
  }
  if (!on_cpu && feed.device != nullptr) {
    double held = 0;
    for (const auto& lane : lanes) held += lane->held.recent_ratio();
    for (const auto& [step, engine] :
         {std::pair(&h2d, Engine::kH2d), {&kernel, Engine::kKernel}, {&d2h, Engine::kD2h}}) {
      *step = std::max(*step, std::min(held, feed.device->busy()[engine].recent_ratio()));
    }
  }
  double& encode = loads[index_of(Bottleneck::kEncode)];
  for (const FeedStats::EncodeLine& line : stats.ledger().encodes) {
    encode = std::max(encode, line.stats->busy.recent_ratio());
  }
  double& output = loads[index_of(Bottleneck::kOutput)];
  for (const auto& entry : stats.outputs()) {
    output = std::max(output, entry->busy.recent_ratio());
    const auto options =
        std::ranges::find(feed.options->outputs, entry->name, &OutputOptions::name);
    if (options == feed.options->outputs.end() || options->queue <= 0) continue;
    output = std::max(output, static_cast<double>(entry->queue_packets) / options->queue);
  }
  return loads;
}

Bottleneck bottleneck(const StepLoads& loads) {
  const auto busiest = std::max_element(loads.rbegin(), loads.rend());
  if (*busiest < kSaturated) return Bottleneck::kSource;
  return static_cast<Bottleneck>(loads.rend() - busiest - 1);
}

}  // namespace framelane
