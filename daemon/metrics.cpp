#include "daemon/metrics.hpp"

#include <chrono>

#include "daemon/feed_metrics.hpp"
#include "daemon/metric_page.hpp"
#include "daemon/process_metrics.hpp"
#include "daemon/version.hpp"
#include "pipeline/host_buffer.hpp"

namespace framelane {
namespace {

/// There is one configuration, read when the process starts.
const std::chrono::system_clock::time_point kLoaded = std::chrono::system_clock::now();

void add_build_info(MetricPage& page) {
  const VersionInfo version = version_info();
  page.gauge("framelane_build_info", "What is running.")
      .add({{"version", version.version},
            {"revision", version.revision},
            {"ffmpeg", version.ffmpeg},
            {"cuda", version.cuda}},
           1);
}

void add_devices(MetricPage& page, const std::vector<std::shared_ptr<const Device>>& devices) {
  auto& up = page.gauge("framelane_device_up", "1 when the device can be used.");
  auto& info = page.gauge("framelane_device_info", "The model and the UUID of the device.");
  auto& engine_busy = page.counter("framelane_engine_busy_seconds_total",
                                   "Time the engine worked for at least one lane.");
  auto& busy = page.counter("framelane_device_busy_seconds_total",
                            "Time at least one engine of the device worked.");
  auto& overlap = page.gauge("framelane_overlap_ratio",
                             "Engine time per device time in the last 10 s; 1 when idle.");
  for (const auto& device : devices) {
    const MetricLabels labels{{"device", device->name()}};
    const double kernel = std::chrono::duration<double>(device->kernel_busy().total()).count();
    up.add(labels, 1);
    info.add({{"device", device->name()}, {"name", device->model()}, {"uuid", ""}}, 1);
    engine_busy.add({{"device", device->name()}, {"engine", "kernel"}}, kernel);
    busy.add(labels, kernel);
    overlap.add(labels, 1);  // a device with one engine has nothing to overlap
  }
}

}  // namespace

std::string metrics_text(const std::vector<FeedView>& feeds,
                         const std::vector<std::shared_ptr<const Device>>& devices) {
  MetricPage page;
  add_build_info(page);
  FeedMetrics feed_metrics(page);
  for (const FeedView& feed : feeds) feed_metrics.add(feed);
  add_devices(page, devices);
  page.gauge("framelane_host_pinned_bytes", "Memory held for frames.")
      .add({}, static_cast<double>(host_buffer_bytes()));
  page.counter("framelane_threads_abandoned_total",
               "Threads given up because a call ignored its deadline.")
      .add({}, static_cast<double>(threads_abandoned()));
  page.gauge("framelane_config_last_reload_successful",
             "1 when the last attempt to load the configuration succeeded.")
      .add({}, 1);
  page.gauge("framelane_config_last_reload_success_timestamp_seconds",
             "When the configuration in force was loaded.")
      .add({}, std::chrono::duration<double>(kLoaded.time_since_epoch()).count());
  add_process_metrics(page);
  return page.text();
}

std::string metrics_text(const Supervisor& supervisor) {
  return metrics_text(supervisor.feeds(), supervisor.devices());
}

}  // namespace framelane
