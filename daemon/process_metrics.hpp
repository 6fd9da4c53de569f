#pragma once

#include "daemon/metric_page.hpp"

namespace framelane {

/// Adds the process_* families that all Prometheus client libraries have, read from /proc.
void add_process_metrics(MetricPage& page);

}  // namespace framelane
