#include "daemon/trace_request.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>

#include "daemon/gzip.hpp"
#include "daemon/incident_request.hpp"
#include "daemon/query.hpp"
#include "daemon/trace_json.hpp"

namespace framelane {
namespace {

/// As Accept-Encoding of RFC 9110 says it, but for weights other than 0.
bool takes_gzip(const HttpRequest& request) {
  const auto found = request.headers.find("accept-encoding");
  if (found == request.headers.end()) return false;
  std::string_view rest = found->second;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string item(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    std::erase(item, ' ');
    if (item.starts_with("gzip") || item.starts_with("*")) return !item.ends_with(";q=0");
  }
  return false;
}

RequestError too_large(const std::string& what_helps) {
  return {406, "too_large", "the trace is larger than 64 MiB; " + what_helps, "seconds"};
}

HttpResponse packed(const FlightRecorder& recorder, const TraceSelection& selection) {
  GzipWriter writer;
  write_trace(recorder, selection, [&](std::string_view text) {
    writer.append(text);
    if (writer.bytes() > kMostTrace) throw too_large("ask for fewer seconds, or one feed");
  });
  HttpResponse response;
  response.body = writer.finish();
  response.headers = {{"Content-Encoding", "gzip"}};
  return response;
}

HttpResponse plain(const FlightRecorder& recorder, const TraceSelection& selection) {
  HttpResponse response;
  write_trace(recorder, selection, [&](std::string_view text) {
    if (response.body.size() + text.size() > kMostTrace) {
      throw too_large(
          "ask for fewer seconds or one feed, or accept gzip (curl --compressed, framelane trace)");
    }
    response.body.append(text);
  });
  return response;
}

}  // namespace

std::map<std::string, std::string> gpus_of(const Supervisor& supervisor) {
  std::map<std::string, std::string> gpus;
  for (const FeedView& feed : supervisor.feeds()) {
    std::string device = feed.stats->status().device;
    if (device.starts_with("cuda")) gpus.emplace(feed.stats->feed(), std::move(device));
  }
  return gpus;
}

HttpResponse answer_trace(const HttpRequest& request, const Supervisor& supervisor,
                          const Incidents& incidents) {
  constexpr std::int64_t kMostSeconds = 7 * 24 * 3600;
  require_known(request, {"seconds", "feed"});
  const std::shared_ptr<FlightRecorder>& recorder = supervisor.recorder();
  if (recorder == nullptr) {
    throw RequestError(404, "no_recorder",
                       "nothing is recorded, because recorder.memory is 0; set it, and restart",
                       "recorder.memory");
  }
  TraceSelection selection;
  selection.time = std::chrono::seconds(number_in(request, "seconds", 10, 1, kMostSeconds));
  selection.feed = text_in(request, "feed");
  selection.gpus = gpus_of(supervisor);
  selection.marks = trace_marks(incidents, std::chrono::system_clock::now() - selection.time);
  if (!selection.feed.empty()) require_feed(supervisor, selection.feed);
  static std::mutex one_at_a_time;  // however many clients ask, one processor is busy with it
  const std::unique_lock lock(one_at_a_time, std::try_to_lock);
  if (!lock) {
    throw RequestError(409, "trace_under_way", "another trace is being written; ask again later");
  }
  return takes_gzip(request) ? packed(*recorder, selection) : plain(*recorder, selection);
}

}  // namespace framelane
