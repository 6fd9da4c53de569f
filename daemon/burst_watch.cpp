#include "daemon/burst_watch.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace framelane {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::string most_frequent(const BurstWatch::Counts& counts) {
  return std::ranges::max_element(counts.by_reason, {}, [](const auto& one) { return one.second; })
      ->first;
}

std::string text_of(const Incident& incident, const BurstWatch::Counts& counts) {
  const std::uint64_t sum = counts.sum();
  const char* const s = sum == 1 ? "" : "s";
  const std::string time = incident.end ? " in " + duration_text(incident.lasted) : " so far";
  if (incident.kind == IncidentKind::kClockJumped) {
    if (sum == 1) return "the source's clock jumped";
    return fmt::format("the source's clock jumped {} times{}", sum, time);
  }
  std::string reasons;
  for (const auto& [reason, count] : counts.by_reason) {
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", reason, count);
  }
  if (!incident.output.empty()) {
    return fmt::format("{} packet{} dropped before output {}{} ({})", sum, s, incident.output, time,
                       reasons);
  }
  return fmt::format("{} frame{} dropped{} ({})", sum, s, time, reasons);
}

}  // namespace

std::uint64_t BurstWatch::Counts::sum() const {
  std::uint64_t all = 0;
  for (const auto& [reason, count] : by_reason) all += count;
  return all;
}

void BurstWatch::Counts::add(const Counts& more) {
  for (const auto& [reason, count] : more.by_reason) by_reason[reason] += count;
  encodes.insert(more.encodes.begin(), more.encodes.end());
}

void BurstWatch::look(const Counts& more, Moment now) {
  const bool any = more.sum() > 0;
  if (!under_way(now)) counts_ = {};
  if (any) {
    if (counts_.sum() == 0) first_ = now;
    last_ = now;
    counts_.add(more);
    const bool due = lasts() ? now.steady - told_ >= kTold : counts_.sum() >= least_;
    if (due) tell(now);
  }
  if (lasts() && now.steady - last_.steady >= kCalm) end();
}

bool BurstWatch::under_way(Moment now) const {
  return lasts() || (counts_.sum() > 0 && now.steady - first_.steady < kBurstTime);
}

void BurstWatch::tell(Moment now) {
  const std::uint64_t id = incident_.id;
  incident_ = subject_;
  incident_.id = id;
  incident_.begin = first_.wall;
  if (incident_.code.empty()) incident_.code = most_frequent(counts_);
  if (counts_.encodes.size() == 1) incident_.encode = *counts_.encodes.begin();
  incident_.lasted = duration_cast<milliseconds>(last_.steady - first_.steady);
  incident_.text = text_of(incident_, counts_);
  told_ = now.steady;
  incidents_->put(incident_);
}

void BurstWatch::end() {
  if (!lasts()) return;
  tell(last_);
  incident_.end = std::max(last_.wall, first_.wall);
  incident_.text = text_of(incident_, counts_);
  incidents_->put(incident_);
  incident_ = {};
  counts_ = {};
}

}  // namespace framelane
