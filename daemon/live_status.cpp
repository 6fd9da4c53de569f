#include "daemon/live_status.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/bottleneck.hpp"
#include "daemon/hls_request.hpp"
#include "daemon/json_text.hpp"
#include "daemon/lane_timeline.hpp"
#include "daemon/version.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/utc_time.hpp"
#include "pipeline/measure/output_totals.hpp"

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// With as many decimals as one can read, which keeps the text short.
Json number_or_null(std::optional<double> number) {
  if (!number) return nullptr;
  return *number >= 1000 ? Json(std::llround(*number)) : Json(std::round(*number * 100) / 100);
}

std::optional<double> bits(std::optional<double> bytes) {
  return bytes ? std::optional(8 * *bytes) : std::nullopt;
}

/// The reasons that have a count.
template <typename Counts, typename Names>
Json counts_json(const Counts& counts, const Names& names) {
  Json json = Json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) json[std::string(names[i])] = static_cast<std::uint64_t>(counts[i]);
  }
  return json;
}

template <typename Counts>
std::uint64_t sum(const Counts& counts) {
  std::uint64_t all = 0;
  for (const auto& count : counts) all += count;
  return all;
}

Json encodes_json(const FeedStats& stats, const FeedHistory& history) {
  Json encodes = Json::array();
  const FeedStats::Ledger ledger = stats.ledger();
  for (std::size_t i = 0; i < ledger.encodes.size(); ++i) {
    const FeedStats::EncodeLine& line = ledger.encodes[i];
    Json json{{"name", line.stats->name},
              {"codec", line.stats->copy ? "copy" : line.stats->codec()}};
    json["reason"] = text_or_null(redact(line.stats->reason()));
    if (!line.stats->copy) {
      const auto [width, height] = line.stats->size();
      json["size"] = width > 0 ? Json(fmt::format("{}x{}", width, height)) : Json(nullptr);
      json["fps_out"] = number_or_null(history.rate(&FeedCounts::encode_frames, i));
      json["in"] = line.in;
      json["out"] = line.out;
      json["dropped"] = counts_json(line.dropped, kDropReasonNames);
      json["in_flight"] = line.in_flight;
    }
    encodes.push_back(std::move(json));
  }
  return encodes;
}

Json outputs_json(const FeedView& feed, const FeedHistory& history) {
  Json outputs = Json::array();
  const std::vector<OutputTotals> totals = output_totals(*feed.stats);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const OutputTotals& output = totals[i];
    Json from = Json::array();
    int queue_limit = 0;
    for (const OutputOptions& options : feed.options->outputs) {
      if (options.name != output.name) continue;
      from.push_back(options.from);
      queue_limit += options.queue;
    }
    const std::uint64_t losses = history.output_losses_recently(i);
    const auto playlist = playlist_of(*feed.options, output.name);
    outputs.push_back(
        {{"name", output.name},
         {"from", from},
         {"state", kFeedStateNames[index_of(output.state)]},
         {"reason", text_or_null(redact(output.reason))},
         {"retention_reason", text_or_null(redact(output.retention_reason))},
         {"bits", number_or_null(bits(history.rate(&FeedCounts::output_bytes, i)))},
         {"bytes", output.bytes},
         {"queue", output.queue_packets},
         {"queue_limit", queue_limit},
         {"packets_dropped", sum(output.packets_dropped)},
         {"dropped", counts_json(output.packets_dropped, kPacketDropNames)},
         {"packets_lost", output.packets_lost},
         {"packets_lost_recently", history.packets_lost_recently(i)},
         {"lost_recently", losses},
         {"code", losses > 0 ? Json(std::string(output.faults.code)) : Json(nullptr)},
         {"reconnects", sum(output.reconnects)},
         {"playlist",
          playlist ? Json(output.name + "/" + playlist->filename().string()) : Json(nullptr)}});
  }
  return outputs;
}

Json latency_json(const FeedHistory& history) {
  const std::optional<double> median = history.latency(0.5);
  if (!median) return nullptr;
  return {{"p50", *median}, {"p99", *history.latency(0.99)}};
}

Json bottleneck_json(const FeedView& feed, FeedState state) {
  if (state != FeedState::kRunning) return nullptr;
  return kBottleneckNames[index_of(bottleneck(step_loads(feed)))];
}

/// The share of the last seconds in which each engine of a GPU worked for the feed. Kernels of
/// several lanes may run at the same time.
Json engines_json(const FeedView& feed, std::chrono::steady_clock::time_point now) {
  if (feed.device == nullptr || !feed.device->has_copy_engines()) return nullptr;
  Json json = Json::object();
  for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
    double share = 0;
    for (const auto& lane : feed.stats->lanes()) share += lane->busy[engine].recent_ratio(now);
    json[std::string(kEngineNames[index_of(engine)])] =
        std::round(std::min(share, 1.0) * 10'000) / 10'000;
  }
  return json;
}

Json feed_json(const FeedView& feed, const FeedHistory& history,
               std::chrono::steady_clock::time_point now) {
  const FeedStats& stats = *feed.stats;
  const FeedStats::Status status = stats.status();
  const double luma = stats.luma_mean;
  const bool decodes = history.latest().decodes;
  return {
      {"name", stats.feed()},
      {"state", kFeedStateNames[index_of(status.state)]},
      {"reason", text_or_null(redact(status.reason))},
      {"code",
       status.reason.empty() ? Json(nullptr) : text_or_null(std::string(status.faults.code))},
      {"since", utc_time(status.since)},
      {"up", is_up(feed, now)},
      {"device", text_or_null(status.device)},
      {"decoder", text_or_null(status.decoder)},
      {"size", text_or_null(status.size)},
      {"bottleneck", bottleneck_json(feed, status.state)},
      {"engines", engines_json(feed, now)},
      {"fps_in", decodes ? number_or_null(history.rate(&FeedCounts::frames_in)) : Json(nullptr)},
      {"fps_out", decodes ? number_or_null(history.rate(&FeedCounts::frames_out)) : Json(nullptr)},
      {"bits_in", number_or_null(bits(history.rate(&FeedCounts::bytes_in)))},
      {"dropped", counts_json(history.latest().dropped, kDropReasonNames)},
      {"dropped_recently", history.lost_recently()},
      {"latency", latency_json(history)},
      {"reconnects", sum(stats.reconnects)},
      {"restarts", sum(stats.restarts)},
      {"luma", luma == luma ? Json(luma) : Json(nullptr)},  // NaN: none
      {"encodes", encodes_json(stats, history)},
      {"outputs", outputs_json(feed, history)}};
}

Json lane_json(const LaneTimeline& timeline, bool copies) {
  Json json{{"feed", timeline.feed}, {"lane", timeline.lane}};
  for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
    if (engine != Engine::kKernel && !copies) continue;
    json[std::string(kEngineNames[index_of(engine)])] = timeline.engines[index_of(engine)];
  }
  return json;
}

Json device_json(const Device& device, const std::vector<LaneTimeline>& lanes,
                 const std::vector<FeedView>& feeds, std::chrono::steady_clock::time_point now) {
  const bool copies = device.has_copy_engines();
  Json occupancy = Json::object();
  for (const Engine engine : {Engine::kH2d, Engine::kKernel, Engine::kD2h}) {
    if (engine != Engine::kKernel && !copies) continue;
    occupancy[std::string(kEngineNames[index_of(engine)])] =
        device.busy()[engine].recent_ratio(now);
  }
  Json shown = Json::array();
  for (const LaneTimeline& lane : lanes) {
    const auto feed = std::ranges::find_if(
        feeds, [&](const FeedView& view) { return view.stats->feed() == lane.feed; });
    if (feed == feeds.end() || feed->stats->status().device != device.name()) continue;
    shown.push_back(lane_json(lane, copies));
  }
  return {{"device", device.name()},
          {"name", device.model()},
          {"up", !device.lost()},
          {"occupancy", occupancy},
          {"overlap", copies ? Json(device.busy().overlap_ratio(now)) : Json(nullptr)},
          {"lanes", shown}};
}

Json recorder_json(const FlightRecorder* recorder, std::chrono::steady_clock::time_point now) {
  if (recorder == nullptr) return nullptr;
  const auto oldest = recorder->oldest();
  return {{"seconds", oldest ? std::chrono::duration<double>(now - *oldest).count() : 0},
          {"bytes", recorder->bytes()}};
}

std::string text_of(const Json& json) { return json_text(json); }

}  // namespace

LiveStatus::LiveStatus(const Supervisor& supervisor)
    : supervisor_(supervisor), started_(Clock::now()), host_(host_name()) {}

void LiveStatus::sample(Clock::time_point now) {
  feeds_ = supervisor_.feeds();
  std::map<std::string, FeedHistory> present;
  for (const FeedView& feed : feeds_) {
    auto node = histories_.extract(feed.stats->feed());
    FeedHistory& history = node.empty() ? present[feed.stats->feed()]
                                        : present.insert(std::move(node)).position->second;
    history.add(counts_of(*feed.stats, now));
  }
  histories_ = std::move(present);
}

std::string LiveStatus::status_json(Clock::time_point now) const {
  Json feeds = Json::array();
  for (const FeedView& feed : feeds_) {
    feeds.push_back(feed_json(feed, histories_.at(feed.stats->feed()), now));
  }
  const FlightRecorder* const recorder = supervisor_.recorder().get();
  const std::vector<LaneTimeline> lanes = recorder != nullptr
                                              ? lane_timelines(*recorder, now, kMostLanes)
                                              : std::vector<LaneTimeline>();
  Json devices = Json::array();
  for (const auto& device : supervisor_.devices().all()) {
    devices.push_back(device_json(*device, lanes, feeds_, now));
  }
  return text_of({{"time", utc_time(std::chrono::system_clock::now())},
                  {"uptime", std::chrono::duration<double>(now - started_).count()},
                  {"version", version_info().version},
                  {"host", host_},
                  {"feeds", feeds},
                  {"devices", devices},
                  {"recorder", recorder_json(recorder, now)}});
}

std::string LiveStatus::history_json() const {
  Json feeds = Json::object();
  for (const auto& [name, history] : histories_) {
    Json fps_in = Json::array(), fps_out = Json::array(), dropped = Json::array(),
         rate = Json::array();
    for (const FeedHistory::Point& point : history.points()) {
      fps_in.push_back(number_or_null(point.fps_in));
      fps_out.push_back(number_or_null(point.fps_out));
      dropped.push_back(point.lost);
      rate.push_back(number_or_null(point.bits));
    }
    feeds[name] = {{"fps_in", fps_in}, {"fps_out", fps_out}, {"dropped", dropped}, {"bits", rate}};
  }
  return text_of({{"interval", FeedHistory::kInterval.count()}, {"feeds", feeds}});
}

}  // namespace framelane
