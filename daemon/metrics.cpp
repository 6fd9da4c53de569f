#include "daemon/metrics.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "daemon/feed_metrics.hpp"
#include "daemon/metric_page.hpp"
#include "daemon/process_metrics.hpp"
#include "daemon/supervisor.hpp"
#include "daemon/version.hpp"
#include "pipeline/base/abandoned_threads.hpp"
#include "pipeline/encode/nvenc.hpp"
#include "pipeline/frames/host_registration.hpp"

namespace framelane {
namespace {

constexpr std::array<std::string_view, 3> kHookResultNames{"delivered", "failed", "dropped"};

void add_build_info(MetricPage& page) {
  const VersionInfo version = version_info();
  page.gauge("framelane_build_info", "The versions of framelane, FFmpeg and CUDA; always 1.")
      .add({{"version", version.version},
            {"revision", version.revision},
            {"ffmpeg", version.ffmpeg},
            {"cuda", version.cuda}},
           1);
}

void add_devices(MetricPage& page, const std::vector<std::shared_ptr<const Device>>& devices) {
  auto& up = page.gauge("framelane_device_up", "1 if the device can be used, 0 if it was lost.");
  auto& info =
      page.gauge("framelane_device_info", "The model and the UUID of the device; always 1.");
  auto& engine_busy = page.counter(
      "framelane_engine_busy_seconds_total",
      "Time in which the engine worked for at least one lane. On a GPU each copy and kernel counts "
      "from some 9 microseconds before its work: a kernel of a 1080p frame as 2.6 times its work.");
  auto& busy = page.counter("framelane_device_busy_seconds_total",
                            "Time in which at least one engine of the device worked.");
  auto& overlap = page.gauge("framelane_overlap_ratio",
                             "Sum of the engines' busy times, divided by the device's busy time, "
                             "in the last 10 s; 1 if idle.");
  for (const auto& device : devices) {
    const MetricLabels labels{{"device", device->name()}};
    const EngineMeters& engines = device->busy();
    const bool copies = device->has_copy_engines();
    up.add(labels, device->lost() ? 0 : 1);
    info.add({{"device", device->name()}, {"name", device->model()}, {"uuid", device->uuid()}}, 1);
    for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
      if (engine != Engine::kKernel && !copies) continue;
      engine_busy.add(
          {{"device", device->name()}, {"engine", std::string(kEngineNames[index_of(engine)])}},
          std::chrono::duration<double>(engines[engine].total()).count());
    }
    busy.add(labels, std::chrono::duration<double>(engines.any().total()).count());
    // The CPU has one engine, so nothing overlaps.
    overlap.add(labels, copies ? engines.overlap_ratio() : 1);
  }
  // Without a GPU the family does not exist.
  if (std::ranges::none_of(devices, [](const auto& d) { return d->has_copy_engines(); })) return;
  auto& memory = page.gauge("framelane_device_memory_bytes",
                            "GPU memory that is allocated for frames, without what FFmpeg "
                            "allocates for NVDEC and NVENC.");
  auto& sessions = page.gauge("framelane_device_encoder_sessions",
                              "NVENC encoders that framelane has open on the GPU.");
  for (const auto& device : devices) {
    if (!device->has_copy_engines()) continue;
    memory.add({{"device", device->name()}}, static_cast<double>(device->memory_bytes()));
    sessions.add({{"device", device->name()}}, NvencSession::count(device->name()));
  }
}

void add_hooks(MetricPage& page, const Hooks& hooks) {
  const auto counts = hooks.counts();
  if (counts.empty()) return;
  auto& deliveries = page.counter(
      "framelane_hook_deliveries_total",
      "Events for the hook that were taken (delivered), refused (failed), or lost because too many "
      "waited or the process ended (dropped).");
  auto& retries = page.counter("framelane_hook_retries_total",
                               "Tries to deliver an event that failed and are repeated.");
  auto& queue = page.gauge("framelane_hook_queue", "Events that wait for the hook's receiver.");
  for (const auto& [name, hook] : counts) {
    const MetricLabels labels{{"hook", name}};
    deliveries.add_each(labels, "result", kHookResultNames,
                        std::array{hook.delivered, hook.failed, hook.dropped});
    retries.add(labels, static_cast<double>(hook.retries));
    queue.add(labels, static_cast<double>(hook.queued));
  }
}

}  // namespace

std::string metrics_text(const std::vector<FeedView>& feeds,
                         const std::vector<std::shared_ptr<const Device>>& devices,
                         const ConfigReload::Status& config, const FlightRecorder* recorder,
                         const TraceCounts& traces, const Hooks* hooks) {
  MetricPage page;
  add_build_info(page);
  FeedMetrics feed_metrics(page);
  for (const FeedView& feed : feeds) feed_metrics.add(feed);
  add_devices(page, devices);
  page.gauge("framelane_host_pinned_bytes",
             "Host memory that is held for frames: all pools, and the shared memory of other "
             "programs. With a GPU it is locked.")
      .add({}, static_cast<double>(host_memory_bytes()));
  page.counter("framelane_threads_abandoned_total",
               "Threads that were abandoned because a call ignored its deadline.")
      .add({}, static_cast<double>(threads_abandoned()));
  page.gauge("framelane_threads_stuck", "Abandoned threads whose call has not returned yet.")
      .add({}, static_cast<double>(threads_stuck()));
  if (recorder != nullptr) {
    const auto oldest = recorder->oldest();
    const auto covered =
        oldest ? FlightRecorder::Clock::now() - *oldest : std::chrono::nanoseconds(0);
    page.gauge("framelane_recorder_covered_seconds", "How far back the flight recorder goes.")
        .add({}, std::chrono::duration<double>(covered).count());
    page.gauge("framelane_recorder_memory_bytes", "Memory of the flight recorder.")
        .add({}, static_cast<double>(recorder->bytes()));
    page.counter("framelane_recorder_traces_total",
                 "Traces that were written to recorder.directory, by cause.")
        .add_each({}, "cause", kTraceCauseNames, traces);
  }
  if (hooks != nullptr) add_hooks(page, *hooks);
  page.gauge("framelane_config_last_reload_successful",
             "1 if the last attempt to load the configuration succeeded.")
      .add({}, config.successful ? 1 : 0);
  page.gauge("framelane_config_last_reload_success_timestamp_seconds",
             "Unix time at which the current configuration was loaded.")
      .add({}, std::chrono::duration<double>(config.loaded.time_since_epoch()).count());
  add_process_metrics(page);
  return page.text();
}

std::string metrics_text(const Supervisor& supervisor, const ConfigReload::Status& config,
                         const TraceCounts& traces, const Hooks* hooks) {
  return metrics_text(supervisor.feeds(), supervisor.devices().all(), config,
                      supervisor.recorder().get(), traces, hooks);
}

}  // namespace framelane
