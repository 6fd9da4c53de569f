#include "daemon/outage_watch.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "pipeline/base/labels.hpp"

namespace framelane {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::system_clock;

IncidentKind kind_of(const Incident& subject, std::string_view code) {
  if (!subject.output.empty()) {
    return code == kPacketDropNames[index_of(PacketDrop::kDiskFull)] ? IncidentKind::kDiskFull
                                                                     : IncidentKind::kOutputLost;
  }
  if (!subject.encode.empty()) return IncidentKind::kEncodeDown;
  const bool source = std::ranges::find(kIoFaultNames, code) != kIoFaultNames.end();
  return source ? IncidentKind::kSourceLost : IncidentKind::kFeedFailed;
}

std::string text_of(const Incident& incident, const std::vector<std::string>& codes) {
  const bool over = incident.end.has_value();
  const std::string time = over ? " for " + duration_text(incident.lasted) : "";
  const std::string cause = fmt::format(" ({})", fmt::join(codes, ", then "));
  const char* const is = over ? "was" : "is";
  switch (incident.kind) {
    case IncidentKind::kSourceLost:
      return "no data" + time + cause;
    case IncidentKind::kEncodeDown:
      return fmt::format("encode {} {} down{}{}", incident.encode, is, time, cause);
    case IncidentKind::kOutputLost:
      return fmt::format("output {} {} down{}{}", incident.output, is, time, cause);
    case IncidentKind::kDiskFull:
      return fmt::format("disk full: output {} {} down{}", incident.output, is, time);
    default:
      return fmt::format("the feed {} down{}{}", is, time, cause);
  }
}

}  // namespace

void OutageWatch::look(const State& state, Moment now) {
  const std::uint64_t faults = state.faults.count;
  if (faults < seen_) seen_ = 0;  // the counter is another one
  if (faults > seen_) note(state, faults - seen_, now);
  seen_ = faults;
  if (!state.works) return;
  for (auto& [kind, outage] : outages_) {
    if (outage.lasts) recover(outage, state.works_since, now);
    if (outage.settles && now.steady - outage.over >= kSettled) close(outage);
  }
}

void OutageWatch::end(Moment now, std::string_view because) {
  for (auto& [kind, outage] : outages_) {
    if (outage.lasts) recover(outage, now.wall, now, because);
    if (outage.settles) close(outage);
  }
}

/// There are so many more faults.
void OutageWatch::note(const State& state, std::uint64_t faults, Moment now) {
  const FaultCount& fault = state.faults;
  Outage& outage = outages_[kind_of(subject_, fault.code)];
  if (!outage.lasts) begin(outage, state, now);
  Incident& incident = outage.incident;
  const bool is_new = std::ranges::find(outage.codes, fault.code) == outage.codes.end();
  if (is_new && outage.codes.size() < kMostCodes) {
    if (!outage.codes.empty()) incident.reason += "; then " + fault.reason;
    outage.codes.emplace_back(fault.code);
  }
  // Nothing is tried after the last fault, or it went on by itself.
  const bool untried = state.final || (state.works && state.works_since == fault.at);
  incident.retries += untried ? faults - 1 : faults;
  incident.text = text_of(incident, outage.codes);
  incidents_->put(incident);
}

void OutageWatch::begin(Outage& outage, const State& state, Moment now) const {
  const FaultCount& fault = state.faults;
  const bool same = outage.incident.id != 0 && outage.incident.code == fault.code &&
                    now.steady - outage.over < kSettled;
  if (!same) {
    if (outage.settles) close(outage);
    outage = Outage{.incident = subject_};
    outage.incident.kind = kind_of(subject_, fault.code);
    outage.incident.severity = Severity::kError;
    outage.incident.code = fault.code;
    outage.incident.reason = fault.reason;
    outage.incident.begin = fault.worked_until;
  }
  outage.incident.end.reset();
  outage.lasts = true;
  outage.settles = false;
  outage.records = state.records;
  outage.seen = now.steady;
  outage.before =
      std::max(duration_cast<milliseconds>(now.wall - fault.worked_until), milliseconds(0));
}

void OutageWatch::recover(Outage& outage, system_clock::time_point since, Moment now,
                          std::string_view because) {
  Incident& incident = outage.incident;
  const auto time = outage.before + duration_cast<milliseconds>(now.steady - outage.seen) -
                    duration_cast<milliseconds>(now.wall - since);
  incident.lasted += std::max(time, milliseconds(0));
  if (outage.records) incident.gap = incident.lasted;
  outage.end = std::max(since, incident.begin);
  outage.lasts = false;
  outage.over = now.steady;
  outage.settles = incident.kind == IncidentKind::kOutputLost && because.empty();
  if (!outage.settles) return close(outage, because);
  incident.text = fmt::format("output {} works again, for less than a minute ({})", incident.output,
                              fmt::join(outage.codes, ", then "));
  incidents_->put(incident);
}

void OutageWatch::close(Outage& outage, std::string_view because) const {
  Incident& incident = outage.incident;
  outage.settles = false;
  incident.end = outage.end;
  incident.text = text_of(incident, outage.codes).append(because);
  incidents_->put(incident);
}

}  // namespace framelane
