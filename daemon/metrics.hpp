#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/supervisor.hpp"

namespace framelane {

/// The /metrics page: every family of docs/metrics.md in the Prometheus text format, made of one
/// snapshot of the counts at the time of the call. Any thread.
std::string metrics_text(const Supervisor& supervisor);
std::string metrics_text(const std::vector<FeedView>& feeds,
                         const std::vector<std::shared_ptr<const Device>>& devices);

}  // namespace framelane
