#include "daemon/feed_incidents.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "daemon/feed_history.hpp"
#include "pipeline/output/container.hpp"

namespace framelane {
namespace {

/// Of a counter that begins again at 0 if it is another one.
std::uint64_t rise(std::uint64_t& seen, std::uint64_t count) {
  const std::uint64_t before = std::exchange(seen, count);
  return count >= before ? count - before : count;
}

bool works(FeedState state) { return state == FeedState::kRunning || state == FeedState::kEnded; }

/// Ends what is watched under a name that is not there any more.
template <typename Watches, typename End>
void forget_others(Watches& watches, const std::set<std::string>& present, const End& end) {
  for (auto watch = watches.begin(); watch != watches.end();) {
    const bool gone = !present.contains(watch->first);
    if (gone) end(watch->second);
    watch = gone ? watches.erase(watch) : std::next(watch);
  }
}

}  // namespace

FeedIncidents::FeedIncidents(Incidents& incidents, const FeedView& feed)
    : incidents_(incidents),
      stats_(feed.stats),
      source_(incidents, about()),
      format_(incidents, about(IncidentKind::kFormatChanged, Severity::kWarning)),
      jumps_(incidents, about(IncidentKind::kClockJumped, Severity::kWarning), 1),
      losses_(incidents, about(IncidentKind::kFramesDropped, Severity::kWarning), kBurst) {}

Incident FeedIncidents::about(IncidentKind kind, Severity severity) const {
  return {.kind = kind, .severity = severity, .feed = stats_->feed()};
}

void FeedIncidents::look(const FeedView& feed, Moment now) {
  if (feed.options != options_) note_options(feed.options);
  look_at_source(now);
  format_.look(stats_->status().format, now);
  look_at_encodes(now);
  look_at_outputs(now);
}

void FeedIncidents::note_options(const std::shared_ptr<const FeedOptions>& options) {
  options_ = options;
  recording_outputs_.clear();
  recorded_encodes_.clear();
  for (const OutputOptions& output : options->outputs) {
    if (container_of(output).kind != OutputKind::kFile) continue;
    recording_outputs_.insert(output.name);
    recorded_encodes_.insert(output.from);
  }
}

void FeedIncidents::look_at_source(Moment now) {
  const FeedStats::Status status = stats_->status();
  source_.look({.faults = status.faults,
                .works = works(status.state),
                .final = status.state == FeedState::kFailed,
                // A silence that is over is a fault of a source that runs.
                .works_since = std::max(status.since, status.faults.at),
                .records = !recording_outputs_.empty()},
               now);
  BurstWatch::Counts counts;
  const std::size_t jump = index_of(TimestampRepair::kJump);
  if (const auto jumps = rise(jumps_seen_, stats_->timestamp_repairs[jump])) {
    counts.by_reason[std::string(kTimestampRepairNames[jump])] = jumps;
  }
  jumps_.look(counts, now);
}

void FeedIncidents::look_at_encodes(Moment now) {
  std::set<std::string> present;
  BurstWatch::Counts losses;
  for (const FeedStats::EncodeLine& line : stats_->ledger().encodes) {
    if (line.stats->copy) continue;
    const std::string& name = line.stats->name;
    present.insert(name);
    Incident subject = about();
    subject.encode = name;
    OutageWatch& outage = encodes_.try_emplace(name, incidents_, std::move(subject)).first->second;
    const FaultCount faults = line.stats->faults();   // before the reason: what comes now is seen
    const bool down = !line.stats->reason().empty();  // at the next look
    outage.look({.faults = faults,
                 .works = !down,
                 .works_since = now.wall,
                 .records = recorded_encodes_.contains(name)},
                now);
    FrameCounts& seen = dropped_[name];
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const std::uint64_t lost = rise(seen[i], line.dropped[i]);
      const auto reason = static_cast<DropReason>(i);
      // An encode that is down, and a feed that has failed, are incidents of their own.
      const bool counts = is_loss(reason) && reason != DropReason::kFeedFailed &&
                          !(reason == DropReason::kEncoder && down);
      if (lost == 0 || !counts) continue;
      losses.by_reason[std::string(kDropReasonNames[i])] += lost;
      losses.encodes.insert(name);
    }
  }
  losses_.look(losses, now);
  forget_others(encodes_, present, [&](OutageWatch& outage) { outage.end(now, {}); });
  forget_others(dropped_, present, [](FrameCounts&) {});
}

void FeedIncidents::look_at_outputs(Moment now) {
  std::set<std::string> present;
  for (const OutputTotals& output : output_totals(*stats_)) {
    present.insert(output.name);
    auto found = outputs_.find(output.name);
    if (found == outputs_.end()) {
      Incident subject = about(IncidentKind::kFramesDropped, Severity::kWarning);
      subject.output = output.name;
      Incident loss = subject;
      loss.code = kPacketDropNames[index_of(PacketDrop::kQueueFull)];
      OutputWatch watch{.outage = OutageWatch(incidents_, subject),
                        .losses = BurstWatch(incidents_, loss, kBurst)};
      found = outputs_.emplace(output.name, std::move(watch)).first;
    }
    look_at_output(found->second, output, now);
  }
  forget_others(outputs_, present, [&](OutputWatch& watch) {
    watch.outage.end(now, {});
    watch.losses.end();
  });
}

void FeedIncidents::look_at_output(OutputWatch& watch, const OutputTotals& output, Moment now) {
  watch.outage.look({.faults = output.faults,
                     .works = works(output.state),
                     .final = output.state == FeedState::kFailed,
                     .works_since = now.wall,
                     .records = recording_outputs_.contains(output.name)},
                    now);
  // What an output drops that is down belongs to that; a full queue also makes it drop what depends
  // on what was lost, and that goes on when the queue is not full any more.
  BurstWatch::Counts losses;
  for (const PacketDrop reason : {PacketDrop::kQueueFull, PacketDrop::kWaitKeyframe}) {
    const std::uint64_t lost =
        rise(watch.dropped[index_of(reason)], output.packets_dropped[index_of(reason)]);
    if (lost > 0) losses.by_reason[std::string(kPacketDropNames[index_of(reason)])] = lost;
  }
  const bool full =
      losses.by_reason.contains(std::string(kPacketDropNames[index_of(PacketDrop::kQueueFull)]));
  const bool belongs = full || watch.losses.under_way(now);
  watch.losses.look(belongs ? losses : BurstWatch::Counts{}, now);
}

void FeedIncidents::end(Moment now, std::string_view because) {
  source_.end(now, because);
  format_.end();
  jumps_.end();
  losses_.end();
  for (auto& [name, outage] : encodes_) outage.end(now, because);
  for (auto& [name, watch] : outputs_) {
    watch.outage.end(now, because);
    watch.losses.end();
  }
}

}  // namespace framelane
