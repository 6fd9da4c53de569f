#pragma once

#include "daemon/metric_page.hpp"

namespace framelane {

/// The process_* families that Prometheus' client libraries agree on, from /proc.
void add_process_metrics(MetricPage& page);

}  // namespace framelane
