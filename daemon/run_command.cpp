#include <systemd/sd-daemon.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "daemon/admin_access.hpp"
#include "daemon/admin_server.hpp"
#include "daemon/api.hpp"
#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "daemon/config_reload.hpp"
#include "daemon/device_set.hpp"
#include "daemon/disk_readers.hpp"
#include "daemon/event_hub.hpp"
#include "daemon/hooks.hpp"
#include "daemon/incident_file.hpp"
#include "daemon/incident_json.hpp"
#include "daemon/incident_watch.hpp"
#include "daemon/incidents.hpp"
#include "daemon/logging.hpp"
#include "daemon/signals.hpp"
#include "daemon/status_line.hpp"
#include "daemon/supervisor.hpp"
#include "daemon/trace_dumps.hpp"
#include "daemon/version.hpp"
#include "daemon/watchdog.hpp"
#include "pipeline/base/log.hpp"

namespace framelane {
namespace {

/// The process ends at the latest so long after its feeds.
constexpr std::chrono::milliseconds kLastWrite{1000};

Moment this_moment() {
  return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()};
}

/// Finds incidents, keeps them, and tells status pages and hooks of them.
class IncidentLoop {
 public:
  IncidentLoop(const std::string& directory, Incidents& incidents, EventHub& events, Hooks& hooks)
      : incidents_(incidents),
        events_(events),
        hooks_(hooks),
        file_(incident_path(directory), incidents) {}

  void begin(const Supervisor& supervisor) {
    const Moment now = this_moment();
    const IncidentFile::Earlier earlier = file_.load(now.wall);
    incidents_.changed_since(told_);
    watch_.begin(earlier, supervisor.feeds().size(), now);
  }
  void turn(const Supervisor& supervisor, bool stops) {
    const Moment now = this_moment();
    // What fails because framelane is stopped is no incident.
    if (!stops) watch_.look(supervisor, now);
    tell();
    file_.save(now.steady);
  }
  void end(bool gave_up) {
    watch_.end(gave_up, this_moment());
    tell();
    hooks_.finish(std::chrono::steady_clock::now());
    file_.finish(kLastWrite);
  }

 private:
  void tell() {
    const std::vector<Incident> changed = incidents_.changed_since(told_);
    for (const Incident& incident : changed) {
      events_.publish("incident", incident_json(incident));
    }
    hooks_.incidents_changed(changed);
  }

  Incidents& incidents_;
  EventHub& events_;
  Hooks& hooks_;
  IncidentWatch watch_{incidents_};
  IncidentFile file_;
  std::uint64_t told_ = 0;
};

void begin_stop(Supervisor& supervisor, Hooks& hooks) {
  hooks.begin_stop(std::chrono::steady_clock::now());
  sd_notify(0, "STOPPING=1\nSTATUS=Completing files");
  supervisor.request_stop();
}

/// Runs until a signal comes, or too many threads are stuck, or, with --once, until the last feed
/// has ended. Returns when everything has stopped: false if because of threads that are stuck.
bool serve(Supervisor& supervisor, ConfigReload& config, TraceDumps& traces,
           IncidentLoop& incidents, DiskReaders& readers, Hooks& hooks, const AdminServer* admin) {
  Watchdog watchdog(supervisor, admin);
  StatusLine status;
  bool announced = false;
  bool stops = false;
  bool gave_up = false;
  std::optional<std::future<ConfigReload::Outcome>> reload;  // of a SIGHUP
  bool reload_wanted = false;
  while (!supervisor.wait_done(std::chrono::milliseconds(0))) {
    const auto now = std::chrono::steady_clock::now();
    if (!announced && supervisor.ready()) {
      announced = true;
      sd_notifyf(0, "READY=1\nSTATUS=%s", status.text(supervisor.feeds(), now).c_str());
      log::info("ready");
    }
    if (announced && !stops) status.update(supervisor.feeds(), now);
    watchdog.feed(now);
    incidents.turn(supervisor, stops);
    readers.watch();
    if (announced && !stops) traces.look(now);
    const WatchdogConfig limits = config.watchdog();
    if (!stops && too_many_stuck(limits)) {
      log::error(
          "{}, and watchdog.max_abandoned is {}: completing files, for 10 s at most, and ending "
          "with status 1, to be started again; what it was stuck in stands above",
          stuck_text(), *limits.max_abandoned);
      stops = gave_up = true;
      watchdog.forget_listener();
      begin_stop(supervisor, hooks);
    }
    if (reload && reload->wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      // What changed the file since another one read it has to be read too.
      reload_wanted = reload_wanted || reload->get().kind == ConfigReload::Outcome::Kind::kBusy;
      reload.reset();
    }
    if (announced && !stops && !reload && std::exchange(reload_wanted, false)) {
      try {
        reload = std::async(std::launch::async, [&config] { return config.run(); });
      } catch (const std::system_error& error) {
        log::error(
            "the configuration is not read again: no thread can be started ({}); raise the "
            "limit of threads (TasksMax), and send SIGHUP again",
            error.code().message());
      }
    }
    const auto pause = announced ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10);
    const std::optional<int> signal = wait_signal(pause);
    if (!signal) continue;
    if (*signal == SIGUSR1) {
      traces.ask(now);
      continue;
    }
    if (*signal == SIGHUP) {
      reload_wanted = true;
      continue;
    }
    log::info("{}: completing files, for 10 s at most; another signal ends framelane at once",
              *signal == SIGINT ? "SIGINT" : "SIGTERM");
    stops = true;
    second_signal_ends_process();
    begin_stop(supervisor, hooks);
  }
  return !gave_up;
}

/// Null if nothing is to be recorded.
std::shared_ptr<FlightRecorder> make_recorder(const RecorderConfig& config) {
  if (config.memory == 0) return nullptr;
  return std::make_shared<FlightRecorder>(static_cast<std::size_t>(config.memory));
}

/// Throws if other machines can connect and are not to. Only after the listener has been opened is
/// it known what a name such as localhost stands for.
void require_guard(const AdminConfig& config, const AdminServer& admin) {
  if (admin.local_only() || config.insecure) return;
  if (config.tokens.empty()) {
    throw std::runtime_error(admin.address() +
                             " lets other machines connect without a token; name files with "
                             "tokens in admin.tokens, or write 127.0.0.1 in admin.listen");
  }
  if (!admin.uses_tls()) {
    log::warn(
        "admin.tls: is not set, so tokens and answers cross the network in plain text; set it, or "
        "let a proxy on this machine do TLS (admin.insecure: true accepts this)");
  }
}

}  // namespace

int run_command(const RunArguments& arguments) {
  std::optional<StopsAtOnce> starting;
  starting.emplace(kExitDone);
  LoadResult loaded = load_config_file(arguments.config, {.require_files = false});
  if (const auto* problems = std::get_if<std::vector<Problem>>(&loaded)) {
    return print_problems(*problems);
  }
  Config config = std::get<Config>(std::move(loaded));
  set_up_logging(config.log);
  const VersionInfo version = version_info();
  log::info("framelane {} ({}), FFmpeg {}, {} feed{} from {}", version.version, version.revision,
            version.ffmpeg, config.feeds.size(), config.feeds.size() == 1 ? "" : "s",
            arguments.config);
  const std::shared_ptr<DeviceSet> devices = open_devices(config.device, config.feeds);
  if (devices == nullptr) return kExitFailed;
  starting.reset();

  const auto hooks = std::make_shared<Hooks>(config.hooks);
  Supervisor supervisor(std::move(config.feeds), devices,
                        {.once = arguments.once,
                         .reread = reread_secrets(config),
                         .recorder = make_recorder(config.recorder),
                         .on_file = [hooks](const auto& file) { hooks->file_completed(file); }});
  Incidents incidents;
  ConfigReload reload(
      arguments.config, config, supervisor, ConfigReload::kPatience,
      [&](const auto& outcome) { note_reload(incidents, outcome); }, hooks);
  TraceDumps traces(config.recorder.directory, supervisor, incidents);
  EventHub events(supervisor);
  IncidentLoop incident_loop(config.recorder.directory, incidents, events, *hooks);
  DiskReaders readers;
  Program program{supervisor, reload, traces, incidents, events, readers};
  incident_loop.begin(supervisor);  // before anybody can ask for them
  std::unique_ptr<AdminServer> admin;
  if (!config.admin.listen.empty()) {
    try {
      const AdminServerOptions options{
          .takes_long = takes_long,
          .refuse = [&reload](const HttpRequest& request) -> std::optional<HttpResponse> {
            const auto needed = needed_role(request);
            return needed ? reload.access()->refuse(request, *needed) : std::nullopt;
          },
          .access = reload.access()};
      admin = std::make_unique<AdminServer>(
          config.admin.listen,
          [&program](const HttpRequest& request) { return answer(request, program); }, options);
      require_guard(config.admin, *admin);
    } catch (const std::exception& error) {
      log::error("admin.listen: {}", error.what());
      return kExitFailed;
    }
    log::info("admin listener on {}{}{}", admin->address(), admin->uses_tls() ? ", with TLS" : "",
              config.admin.tokens.empty() ? "" : ", with tokens");
  }
  supervisor.start();
  const bool served =
      serve(supervisor, reload, traces, incident_loop, readers, *hooks, admin.get());
  incident_loop.end(!served);
  traces.finish();
  hooks->wait_finished();
  log::info("stopped");
  readers.stop();
  admin.reset();
  const bool failed = !served || (arguments.once && !supervisor.all_succeeded());
  return exit_past_hangs(failed ? kExitFailed : kExitDone, devices.get());
}

}  // namespace framelane
