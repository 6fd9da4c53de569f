#include "daemon/trace_dumps.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "daemon/feed_history.hpp"
#include "daemon/gzip.hpp"
#include "daemon/incident_request.hpp"
#include "daemon/trace_json.hpp"
#include "daemon/trace_request.hpp"
#include "pipeline/base/log.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/output/replace_file.hpp"

namespace framelane {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "framelane-trace-";
constexpr std::string_view kSuffix = ".json.gz";

std::uint64_t lost_frames(const FeedStats& stats) {
  std::uint64_t lost = 0;
  for (const FeedStats::EncodeLine& line : stats.ledger().encodes) {
    for (std::size_t i = 0; i < line.dropped.size(); ++i) {
      if (is_loss(static_cast<DropReason>(i))) lost += line.dropped[i];
    }
  }
  return lost;
}

std::uint64_t failures_of(const FeedStats& stats) {
  std::uint64_t failures = stats.status().state == FeedState::kFailed ? 1 : 0;
  for (const auto& restarts : stats.restarts) failures += restarts;
  return failures;
}

/// Deletes all but the newest; their names sort by time.
void delete_old(const fs::path& directory) {
  std::vector<fs::path> traces;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) traces.push_back(entry.path());
  }
  std::ranges::sort(traces);
  for (std::size_t i = 0; i + TraceDumps::kKept < traces.size(); ++i) fs::remove(traces[i]);
}

/// Why it failed; empty if it did not.
std::string write_file(const FlightRecorder& recorder, const TraceSelection& selection,
                       const fs::path& directory, const std::string& name) {
  try {
    fs::create_directories(directory);
    GzipWriter writer;
    write_trace(recorder, selection, [&](std::string_view text) { writer.append(text); });
    replace_file(directory / name, writer.finish());
  } catch (const std::exception& error) {
    return error.what();
  }
  try {
    delete_old(directory);
  } catch (const std::exception& error) {
    log::warn("old traces are not deleted: {}", redact(error.what()));
  }
  return {};
}

}  // namespace

TraceDumps::TraceDumps(std::string directory, const Supervisor& supervisor,
                       const Incidents& incidents)
    : directory_(std::move(directory)), supervisor_(supervisor), incidents_(incidents) {}

std::optional<TraceCause> TraceDumps::find_cause(Clock::time_point now) {
  std::optional<TraceCause> cause;
  for (const FeedView& feed : supervisor_.feeds()) {
    const auto [entry, is_new] = feeds_.try_emplace(feed.stats->feed());
    FeedLosses& losses = entry->second;
    const std::uint64_t lost = lost_frames(*feed.stats);
    const std::uint64_t failures = failures_of(*feed.stats);
    if (!is_new && lost >= losses.lost + kBurst) cause = TraceCause::kDrops;
    if (!is_new && failures > losses.failures) cause = TraceCause::kFeedFailed;
    losses.failures = failures;
    if (is_new || cause || now - losses.since >= kBurstTime) {
      losses.since = now;
      losses.lost = lost;
    }
  }
  const auto devices = supervisor_.devices().all();
  const auto lost = static_cast<std::size_t>(
      std::ranges::count_if(devices, [](const auto& device) { return device->lost(); }));
  if (lost > std::exchange(devices_lost_, lost)) cause = TraceCause::kDeviceLost;
  return cause;
}

void TraceDumps::want(TraceCause cause, Clock::time_point now) {
  if (wanted_ || (cause != TraceCause::kSignal && last_ && now - *last_ < kPause)) return;
  wanted_ = cause;
  due_ = cause == TraceCause::kSignal ? now : now + kAftermath;
  last_ = now;
}

void TraceDumps::look(Clock::time_point now) {
  if (!works()) return;
  finish_writing();
  if (const auto cause = find_cause(now)) want(*cause, now);
  if (!wanted_ || now < due_ || writing_.under_way()) return;
  begin_to_write();
}

void TraceDumps::ask(Clock::time_point now) {
  if (works()) return want(TraceCause::kSignal, now);
  log::warn("SIGUSR1: no trace is written, because {}; or fetch one with framelane trace",
            directory_.empty() ? "recorder.directory is not set" : "recorder.memory is 0");
}

void TraceDumps::finish() {
  if (writing_.begun() && !writing_.wait_for(kLastWrite)) writing_.abandon();
}

void TraceDumps::begin_to_write() {
  writing_cause_ = *std::exchange(wanted_, std::nullopt);
  const std::string name = fmt::format(
      "{}{:%Y%m%dT%H%M%SZ}-{}{}", kPrefix,
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())),
      kTraceCauseNames[static_cast<std::size_t>(writing_cause_)], kSuffix);
  const TraceSelection selection{
      .time = kLength,
      .gpus = gpus_of(supervisor_),
      .marks = trace_marks(incidents_, std::chrono::system_clock::now() - kLength)};
  try {
    writing_.begin([recorder = supervisor_.recorder(), selection, directory = directory_, name] {
      std::string failure = write_file(*recorder, selection, directory, name);
      if (failure.empty()) log::info("a trace has been written: {}/{}", redact(directory), name);
      return failure;
    });
  } catch (const std::system_error& error) {
    log::warn(
        "no trace is written: no thread can be started ({}); raise the limit of threads "
        "(TasksMax)",
        error.code().message());
  }
}

void TraceDumps::finish_writing() {
  const auto failure = writing_.begun() ? writing_.wait_for({}) : std::nullopt;
  if (!failure) return;
  if (failure->empty()) {
    ++written_[static_cast<std::size_t>(writing_cause_)];
  } else {
    log::warn("recorder.directory: no trace can be written: {}", redact(*failure));
  }
}

}  // namespace framelane
