#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/config_reload.hpp"
#include "daemon/feed_view.hpp"
#include "daemon/trace_dumps.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {

class Supervisor;

/// The /metrics page: every family of docs/metrics.md in the Prometheus text format. The counts of
/// a feed come from one snapshot, taken during the call. `hooks` may be null. Any thread.
std::string metrics_text(const Supervisor& supervisor, const ConfigReload::Status& config,
                         const TraceCounts& traces, const Hooks* hooks = nullptr);
std::string metrics_text(const std::vector<FeedView>& feeds,
                         const std::vector<std::shared_ptr<const Device>>& devices,
                         const ConfigReload::Status& config, const FlightRecorder* recorder,
                         const TraceCounts& traces, const Hooks* hooks = nullptr);

}  // namespace framelane
