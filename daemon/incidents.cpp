#include "daemon/incidents.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/log_line.hpp"
#include "pipeline/base/redact.hpp"

namespace framelane {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

void clean(std::string& text) {
  text = without_controls(redact(text));
  if (text.size() <= Incidents::kMostText) return;
  std::size_t end = Incidents::kMostText;
  // Not in the middle of a character of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  text += "…";
}

void clean_texts(Incident& incident) {
  for (std::string* text : {&incident.feed, &incident.encode, &incident.output, &incident.device,
                            &incident.code, &incident.reason, &incident.text}) {
    clean(*text);
  }
}

}  // namespace

std::string duration_text(milliseconds time) {
  using namespace std::chrono;
  if (time < 10s) return fmt::format("{:.1f} s", duration<double>(time).count());
  const auto part = [](auto large, const char* large_unit, auto small, const char* small_unit) {
    if (small.count() == 0) return fmt::format("{} {}", large.count(), large_unit);
    return fmt::format("{} {} {} {}", large.count(), large_unit, small.count(), small_unit);
  };
  const auto whole = std::chrono::round<std::chrono::seconds>(time);
  if (whole < 1min) return fmt::format("{} s", whole.count());
  const auto in_minutes = floor<minutes>(whole);
  if (whole < 1h) return part(in_minutes, "min", whole - in_minutes, "s");
  const auto in_hours = floor<hours>(whole);
  if (whole < days(1)) return part(in_hours, "h", in_minutes - in_hours, "min");
  const auto in_days = floor<days>(whole);
  return part(in_days, "d", in_hours - in_days, "h");
}

std::uint64_t Incidents::add(Incident incident) {
  clean_texts(incident);
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = ++last_id_;
  incident.id = id;
  turn_ = ++change_;
  entries_.emplace(id, Entry{std::move(incident), change_});
  make_room();
  return id;
}

void Incidents::put(Incident& incident) {
  if (incident.id == 0) {
    incident.id = add(incident);
    return;
  }
  Incident clean = incident;
  clean_texts(clean);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(clean.id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.changed = ++change_;
  if (clean.end != entry.incident.end) turn_ = change_;
  entry.incident = std::move(clean);
}

std::optional<Incident> Incidents::find(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found != entries_.end() ? std::optional(found->second.incident) : std::nullopt;
}

void Incidents::restore(const std::vector<Incident>& incidents) {
  const std::lock_guard lock(mutex_);
  for (const Incident& incident : incidents) {
    last_id_ = std::max(last_id_, incident.id);
    entries_.insert_or_assign(incident.id, Entry{incident, ++change_});
    make_room();
  }
  turn_ = change_;
}

std::vector<Incident> Incidents::since(system_clock::time_point since) const {
  const std::lock_guard lock(mutex_);
  std::vector<Incident> found;
  for (const auto& [id, entry] : entries_) {
    if (!entry.incident.end || *entry.incident.end >= since) found.push_back(entry.incident);
  }
  return found;
}

std::vector<Incident> Incidents::changed_since(std::uint64_t& change) const {
  const std::lock_guard lock(mutex_);
  std::vector<const Entry*> changed;
  for (const auto& [id, entry] : entries_) {
    if (entry.changed > change) changed.push_back(&entry);
  }
  std::ranges::sort(changed, {}, &Entry::changed);
  std::vector<Incident> incidents;
  for (const Entry* entry : changed) incidents.push_back(entry->incident);
  change = change_;
  return incidents;
}

std::uint64_t Incidents::last_turn() const {
  const std::lock_guard lock(mutex_);
  return turn_;
}

void Incidents::make_room() {
  if (entries_.size() <= kKept) return;
  const auto over = std::ranges::find_if(
      entries_, [](const auto& entry) { return entry.second.incident.end.has_value(); });
  // The newest is not the one that goes.
  const bool useful = over != entries_.end() && std::next(over) != entries_.end();
  entries_.erase(useful ? over : entries_.begin());
}

}  // namespace framelane
