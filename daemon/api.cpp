#include "daemon/api.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "config/yaml_tree.hpp"
#include "daemon/config_reload.hpp"
#include "daemon/event_hub.hpp"
#include "daemon/hls_request.hpp"
#include "daemon/incident_request.hpp"
#include "daemon/json_text.hpp"
#include "daemon/metrics.hpp"
#include "daemon/query.hpp"
#include "daemon/recordings_request.hpp"
#include "daemon/snapshot_request.hpp"
#include "daemon/supervisor.hpp"
#include "daemon/trace_dumps.hpp"
#include "daemon/trace_request.hpp"
#include "daemon/watchdog.hpp"
#include "daemon/web_pages.hpp"
#include "pipeline/base/redact.hpp"
#include "pipeline/base/utc_time.hpp"
#include "pipeline/encode/nvenc.hpp"
#include "pipeline/measure/output_totals.hpp"

namespace framelane {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFeeds = "/api/v1/feeds/";
constexpr std::string_view kRestartPath = "/restart";
constexpr std::string_view kSnapshotPath = "/snapshot.jpg";
constexpr std::string_view kHlsPath = "/hls/";
constexpr std::string_view kRecordingsPath = "/recordings";
constexpr std::string_view kConfigPath = "/config";
constexpr std::string_view kReloadPath = "/api/v1/reload";
constexpr std::string_view kHealthPath = "/healthz";
constexpr std::string_view kReadinessPath = "/readyz";
constexpr std::string_view kTracePath = "/api/v1/trace";
constexpr std::string_view kEventsPath = "/api/v1/events";

Json reason_json(const std::string& reason) { return text_or_null(redact(reason)); }

/// A line of the ledger, of frames or of sound.
template <typename Counts, typename Names>
Json ledger_json(const std::string& codec, const Counts& counts, const Names& reasons) {
  Json dropped;
  for (std::size_t i = 0; i < counts.dropped.size(); ++i) {
    dropped[std::string(reasons[i])] = counts.dropped[i];
  }
  return {{"codec", codec},
          {"in", counts.in},
          {"out", counts.out},
          {"dropped", dropped},
          {"in_flight", counts.in_flight}};
}

Json encode_json(const FeedStats::EncodeLine& line) {
  const EncodeStats& encode = *line.stats;
  Json json =
      encode.copy ? Json{{"codec", "copy"}} : ledger_json(encode.codec(), line, kDropReasonNames);
  if (!encode.copy) json["reason"] = reason_json(encode.reason());
  if (encode.audio.transcodes) {
    json["audio"] = ledger_json(encode.audio.codec(), encode.audio.counts(), kAudioDropNames);
  }
  return json;
}

Json output_json(const OutputTotals& output) {
  std::uint64_t dropped = 0;
  for (const auto& count : output.packets_dropped) dropped += count;
  return {{"state", kFeedStateNames[index_of(output.state)]},
          {"reason", reason_json(output.reason)},
          {"retention_reason", reason_json(output.retention_reason)},
          {"bytes", output.bytes},
          {"packets_dropped", dropped},
          {"queue", output.queue_packets}};
}

Json feed_json(const FeedStats& stats) {
  const FeedStats::Status status = stats.status();
  Json encodes = Json::object();
  for (const FeedStats::EncodeLine& encode : stats.ledger().encodes) {
    encodes[encode.stats->name] = encode_json(encode);
  }
  Json outputs = Json::object();
  for (const OutputTotals& output : output_totals(stats)) {
    outputs[output.name] = output_json(output);
  }
  return {{"name", stats.feed()},
          {"state", kFeedStateNames[index_of(status.state)]},
          {"reason", reason_json(status.reason)},
          {"since", utc_time(status.since)},
          {"device", status.device},
          {"decoder", status.decoder},
          {"decoder_reason", reason_json(status.decoder_reason)},
          {"encodes", encodes},
          {"outputs", outputs}};
}

HttpResponse json_response(int status, const Json& json) {
  return {status, "application/json", json_text(json) + "\n"};
}

HttpResponse text_response(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text)};
}

HttpResponse not_found(const std::string& path) {
  return error_response(404, "not_found", "there is nothing at " + redact(path));
}

/// The status page for browsers, for others a list of what there is.
HttpResponse index_page(const HttpRequest& request, Program&) {
  if (wants_html(request)) return web_page(request);
  return text_response(200,
                       "framelane\n\n"
                       "GET  /  (with Accept: text/html: the status page)\n"
                       "GET  /metrics\n"
                       "GET  /healthz\n"
                       "GET  /readyz\n"
                       "GET  /api/v1/feeds\n"
                       "GET  /api/v1/feeds/NAME\n"
                       "GET  /api/v1/feeds/NAME/config\n"
                       "GET  /api/v1/feeds/NAME/snapshot.jpg\n"
                       "GET  /api/v1/feeds/NAME/hls/OUTPUT/FILE\n"
                       "GET  /api/v1/feeds/NAME/recordings\n"
                       "GET  /api/v1/feeds/NAME/recordings/OUTPUT/FILE\n"
                       "GET  /api/v1/feeds/NAME/recordings/OUTPUT.mp4\n"
                       "POST /api/v1/feeds/NAME/restart\n"
                       "GET  /api/v1/devices\n"
                       "GET  /api/v1/incidents\n"
                       "GET  /api/v1/trace\n"
                       "GET  /api/v1/events\n"
                       "POST /api/v1/reload\n");
}

HttpResponse web_file(const HttpRequest& request, Program&) { return web_page(request); }

HttpResponse metrics_page(const HttpRequest&, Program& program) {
  return {200, "text/plain; version=0.0.4; charset=utf-8",
          metrics_text(program.supervisor, program.config.status(), program.traces.written(),
                       program.config.hooks())};
}

HttpResponse health(const HttpRequest&, Program& program) {
  if (too_many_stuck(program.config.watchdog())) return text_response(503, stuck_text() + "\n");
  if (program.supervisor.heartbeat_age() < Supervisor::kMaxHeartbeatAge)
    return text_response(200, "ok\n");
  return text_response(503, "the supervisor's loop does not turn\n");
}

HttpResponse readiness(const HttpRequest&, Program& program) {
  return program.supervisor.ready() ? text_response(200, "ready\n")
                                    : text_response(503, "not ready\n");
}

HttpResponse list_feeds(const HttpRequest&, Program& program) {
  Json feeds = Json::array();
  for (const FeedView& feed : program.supervisor.feeds()) feeds.push_back(feed_json(*feed.stats));
  return json_response(200, {{"feeds", feeds}});
}

HttpResponse show_feed(const HttpRequest& request, Program& program) {
  const std::string name = request.path.substr(kFeeds.size());
  return json_response(200, feed_json(*require_feed(program.supervisor, name).stats));
}

HttpResponse restart_feed(const HttpRequest& request, Program& program) {
  const std::string name =
      request.path.substr(kFeeds.size(), request.path.size() - kFeeds.size() - kRestartPath.size());
  if (!program.supervisor.restart(name)) throw no_such_feed(name);
  return json_response(202, {{"feed", name}, {"restarting", true}});
}

HttpResponse snapshot(const HttpRequest& request, Program& program) {
  const std::size_t length = request.path.size() - kFeeds.size() - kSnapshotPath.size();
  return answer_snapshot(request, program.supervisor, request.path.substr(kFeeds.size(), length));
}

HttpResponse hls_file(const HttpRequest& request, Program& program) {
  const std::string rest = request.path.substr(kFeeds.size());
  const std::size_t end_of_feed = rest.find('/');
  const std::string file = rest.substr(end_of_feed + kHlsPath.size());
  const std::size_t end_of_output = file.find('/');
  if (end_of_output == std::string::npos) return not_found(request.path);
  return answer_hls(request, program.supervisor, program.readers, rest.substr(0, end_of_feed),
                    file.substr(0, end_of_output), file.substr(end_of_output + 1));
}

HttpResponse recordings(const HttpRequest& request, Program& program) {
  const std::string rest = request.path.substr(kFeeds.size());
  const std::size_t end_of_feed = rest.find('/');
  return answer_recordings(request, program.supervisor, program.readers,
                           rest.substr(0, end_of_feed),
                           rest.substr(end_of_feed + kRecordingsPath.size()));
}

/// As it is written: all scalars are text.
Json config_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kScalar:
      return redact(node.text);
    case Node::Kind::kSequence: {
      Json items = Json::array();
      for (const Node& item : node.items) items.push_back(config_json(item));
      return items;
    }
    case Node::Kind::kMap:
      break;
  }
  Json map = Json::object();
  for (const Node::Entry& entry : node.entries) map[entry.key] = config_json(entry.value);
  return map;
}

HttpResponse feed_config(const HttpRequest& request, Program& program) {
  const std::size_t length = request.path.size() - kFeeds.size() - kConfigPath.size();
  const std::string name = request.path.substr(kFeeds.size(), length);
  const Node feed = program.config.merged_feed(name);
  if (feed.kind == Node::Kind::kNull) throw no_such_feed(name);
  return json_response(200, config_json(feed));
}

HttpResponse reload_config(const HttpRequest&, Program& program) {
  using Kind = ConfigReload::Outcome::Kind;
  const ConfigReload::Outcome outcome = program.config.run();
  switch (outcome.kind) {
    case Kind::kBusy:
      return error_response(409, "reload_under_way",
                            "another reload is under way; ask again when it has ended");
    case Kind::kStopping:
      return error_response(503, "stopping", "framelane is being stopped");
    case Kind::kRefused: {
      Json problems = Json::array();
      for (const Problem& problem : outcome.problems) {
        const bool placed = problem.line > 0;
        problems.push_back({{"file", problem.file},
                            {"line", placed ? Json(problem.line) : Json(nullptr)},
                            {"column", placed ? Json(problem.column) : Json(nullptr)},
                            {"key", problem.key.empty() ? Json(nullptr) : Json(problem.key)},
                            {"message", redact(problem.message)}});
      }
      const Problem& first = outcome.problems.front();
      Json error{{"code", "wrong_configuration"},
                 {"message", "the configuration goes on as it was: " + redact(to_string(first))},
                 {"key", first.key.empty() ? Json(nullptr) : Json(first.key)},
                 {"problems", std::move(problems)}};
      return json_response(422, {{"error", std::move(error)}});
    }
    case Kind::kDone:
      break;
  }
  const FeedChanges& changes = outcome.changes;
  return json_response(200, {{"added", changes.added},
                             {"changed", changes.changed},
                             {"removed", changes.removed},
                             {"unchanged", changes.unchanged},
                             {"next_start", outcome.next_start}});
}

HttpResponse list_devices(const HttpRequest&, Program& program) {
  Json devices = Json::array();
  for (const auto& device : program.supervisor.devices().all()) {
    devices.push_back(
        {{"device", device->name()}, {"name", device->model()}, {"up", !device->lost()}});
    if (device->has_copy_engines()) {
      devices.back()["encoder_sessions"] = NvencSession::count(device->name());
    }
  }
  return json_response(200, {{"devices", devices}});
}

HttpResponse trace(const HttpRequest& request, Program& program) {
  return answer_trace(request, program.supervisor, program.incidents);
}

HttpResponse incidents(const HttpRequest& request, Program& program) {
  return answer_incidents(request, program.incidents, program.supervisor);
}

HttpResponse events(const HttpRequest&, Program& program) {
  HttpResponse response{.content_type = "text/event-stream"};
  response.stream = program.events.subscribe();
  response.headers = {{"X-Accel-Buffering", "no"}};  // for nginx
  return response;
}

bool is_of_recordings(std::string_view path) {
  return path == kRecordingsPath ||
         (path.starts_with(kRecordingsPath) && path[kRecordingsPath.size()] == '/');
}

struct Route {
  bool post = false;  ///< answers POST; if false, GET and HEAD
  HttpResponse (*answer)(const HttpRequest&, Program&) = nullptr;
  bool takes_long = false;
};

std::optional<Route> find_route(std::string_view path) {
  struct Fixed {
    std::string_view path;
    Route route;
  };
  static constexpr std::array kFixed{
      Fixed{"/", {false, index_page}},
      Fixed{"/metrics", {false, metrics_page}},
      Fixed{kHealthPath, {false, health}},
      Fixed{kReadinessPath, {false, readiness}},
      Fixed{"/api/v1/feeds", {false, list_feeds}},
      Fixed{"/api/v1/devices", {false, list_devices}},
      Fixed{kReloadPath, {true, reload_config, true}},
      Fixed{kTracePath, {false, trace, true}},
      Fixed{"/api/v1/incidents", {false, incidents, true}},
      Fixed{kEventsPath, {false, events}},
  };
  const auto fixed = std::ranges::find(kFixed, path, &Fixed::path);
  if (fixed != kFixed.end()) return fixed->route;
  if (path.starts_with(kWebFolder)) return Route{false, web_file};
  if (!path.starts_with(kFeeds)) return std::nullopt;
  const auto rest = path.substr(kFeeds.size());
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos) return Route{false, show_feed};
  if (rest.substr(slash) == kRestartPath) return Route{true, restart_feed};
  if (rest.substr(slash) == kSnapshotPath) return Route{false, snapshot, true};
  if (rest.substr(slash).starts_with(kHlsPath)) return Route{false, hls_file, true};
  if (is_of_recordings(rest.substr(slash))) return Route{false, recordings, true};
  if (rest.substr(slash) == kConfigPath) return Route{false, feed_config, true};
  return std::nullopt;
}

}  // namespace

std::optional<AdminRole> needed_role(const HttpRequest& request) {
  if (!request.only_reads()) return AdminRole::kControl;
  if (request.path == kHealthPath || request.path == kReadinessPath) return std::nullopt;
  return AdminRole::kRead;
}

bool takes_long(const HttpRequest& request) {
  const auto route = find_route(request.path);
  return route && route->takes_long;
}

HttpResponse answer(const HttpRequest& request, Program& program) {
  const auto route = find_route(request.path);
  if (!route) return not_found(request.path);
  if (route->post ? request.method != "POST" : !request.only_reads()) {
    const std::string allowed = route->post ? "POST" : "GET, HEAD";
    HttpResponse response = error_response(405, "method_not_allowed", "use " + allowed);
    response.headers.emplace("Allow", allowed);
    return response;
  }
  // A browser lets a page of another origin send this header only if the server allows it, and this
  // one never does.
  if (route->post && !request.headers.contains("x-framelane-request")) {
    return error_response(403, "header_required", "send the header X-Framelane-Request: 1");
  }
  try {
    return route->answer(request, program);
  } catch (const RequestError& error) {
    return error.response();
  }
}

}  // namespace framelane
