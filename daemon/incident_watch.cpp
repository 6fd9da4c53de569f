#include "daemon/incident_watch.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/supervisor.hpp"
#include "daemon/version.hpp"
#include "daemon/watchdog.hpp"
#include "pipeline/base/abandoned_threads.hpp"

namespace framelane {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::system_clock;

/// What happens at a moment and is over.
Incident event(IncidentKind kind, Severity severity, std::string text,
               system_clock::time_point at) {
  return {.kind = kind, .severity = severity, .text = std::move(text), .begin = at, .end = at};
}

void end_incident(Incident& incident, Moment now) {
  incident.end = std::max(now.wall, incident.begin);
  incident.lasted = duration_cast<milliseconds>(*incident.end - incident.begin);
}

std::string counted(std::size_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string changes_text(const FeedChanges& changes) {
  std::string text = "another configuration is in force";
  const auto add = [&text](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) text += fmt::format("; {}: {}", what, fmt::join(names, ", "));
  };
  add("added", changes.added);
  add("changed", changes.changed);
  add("removed", changes.removed);
  return text;
}

Observation observe(const Supervisor& supervisor) {
  Observation seen{
      .feeds = supervisor.feeds(), .lost_devices = {}, .stuck_threads = threads_stuck()};
  for (const auto& device : supervisor.devices().all()) {
    if (device->lost()) seen.lost_devices.push_back(device->name());
  }
  return seen;
}

}  // namespace

void IncidentWatch::begin(const IncidentFile::Earlier& earlier, std::size_t feeds, Moment now) {
  const VersionInfo version = version_info();
  std::string text =
      fmt::format("framelane {} has started, with {}", version.version, counted(feeds, "feed"));
  const bool killed = earlier.seen && !earlier.was_stopped;
  if (earlier.seen) {
    const auto away = duration_cast<milliseconds>(now.wall - *earlier.seen);
    text += fmt::format("; it had not run for {}", duration_text(std::max(away, milliseconds(0))));
    if (killed) text += ", and had not been stopped: it was killed, or the machine failed";
  }
  incidents_.add(event(IncidentKind::kStarted, killed ? Severity::kWarning : Severity::kInfo,
                       std::move(text), now.wall));
}

void IncidentWatch::look(const Supervisor& supervisor, Moment now) {
  if (now.steady < next_) return;
  next_ = now.steady + kEvery;
  look(observe(supervisor), now);
}

void IncidentWatch::look(const Observation& seen, Moment now) {
  look_at_feeds(seen.feeds, now);
  look_at_devices(seen.lost_devices, now);
  look_at_threads(seen.stuck_threads, now);
}

void IncidentWatch::look_at_feeds(const std::vector<FeedView>& feeds, Moment now) {
  for (auto watch = feeds_.begin(); watch != feeds_.end();) {
    const bool gone = std::ranges::none_of(
        feeds, [&](const FeedView& feed) { return watch->second.is_of(feed); });
    if (gone) watch->second.end(now, "; then the feed was removed");
    watch = gone ? feeds_.erase(watch) : std::next(watch);
  }
  for (const FeedView& feed : feeds) {
    feeds_.try_emplace(feed.stats->feed(), incidents_, feed).first->second.look(feed, now);
  }
}

void IncidentWatch::look_at_devices(const std::vector<std::string>& lost, Moment now) {
  for (const std::string& device : lost) {
    if (lost_.contains(device)) continue;
    // It lasts: a device that is lost stays so until framelane is started again.
    Incident incident{.kind = IncidentKind::kDeviceLost, .severity = Severity::kError};
    incident.device = device;
    incident.code = "device_lost";
    incident.text = device + " is lost; its feeds go on on another GPU or on the CPU";
    incident.begin = now.wall;
    incidents_.put(incident);
    lost_.emplace(device, std::move(incident));
  }
}

void IncidentWatch::look_at_threads(std::uint64_t stuck, Moment now) {
  if (stuck == std::exchange(stuck_threads_, stuck)) return;
  if (stuck == 0) {
    end_incident(*stuck_, now);
    incidents_.put(*stuck_);
    stuck_.reset();
    return;
  }
  if (!stuck_) {
    stuck_ = {.kind = IncidentKind::kThreadStuck, .severity = Severity::kError, .begin = now.wall};
  }
  stuck_->text = counted(stuck, "thread") + " stuck in calls that do not return";
  incidents_.put(*stuck_);
}

void IncidentWatch::end(bool gave_up, Moment now) {
  constexpr std::string_view kBecause = "; then framelane was stopped";
  for (auto& [name, feed] : feeds_) feed.end(now, kBecause);
  for (auto& [device, incident] : lost_) {
    end_incident(incident, now);
    incidents_.put(incident);
  }
  if (stuck_) {
    end_incident(*stuck_, now);
    incidents_.put(*stuck_);
  }
  const std::string why =
      gave_up ? "framelane has ended itself, because " + stuck_text() : "framelane was stopped";
  incidents_.add(
      event(IncidentKind::kStopped, gave_up ? Severity::kError : Severity::kInfo, why, now.wall));
}

void note_reload(Incidents& incidents, const ConfigReload::Outcome& outcome) {
  using Kind = ConfigReload::Outcome::Kind;
  const auto now = system_clock::now();
  if (outcome.kind == Kind::kDone) {
    incidents.add(
        event(IncidentKind::kReload, Severity::kInfo, changes_text(outcome.changes), now));
  }
  if (outcome.kind != Kind::kRefused) return;
  Incident incident = event(IncidentKind::kReloadRefused, Severity::kWarning,
                            "another configuration is refused, and the present one goes on: " +
                                counted(outcome.problems.size(), "problem"),
                            now);
  incident.code = fault_code(FeedFault::kConfiguration);
  incident.reason = to_string(outcome.problems.front());
  incidents.add(std::move(incident));
}

}  // namespace framelane
