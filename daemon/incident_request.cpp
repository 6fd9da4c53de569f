#include "daemon/incident_request.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/incident_json.hpp"
#include "daemon/query.hpp"
#include "pipeline/base/labels.hpp"

namespace framelane {

HttpResponse answer_incidents(const HttpRequest& request, const Incidents& incidents,
                              const Supervisor& supervisor) {
  require_known(request, {"since", "feed"});
  const auto since = time_in(request, "since");
  const std::string feed = text_in(request, "feed");
  std::vector<Incident> found =
      incidents.since(since.value_or(std::chrono::system_clock::time_point()));
  if (!feed.empty()) {
    std::erase_if(found, [&](const Incident& incident) { return incident.feed != feed; });
    // A feed that has been removed may still have some.
    if (found.empty()) require_feed(supervisor, feed);
  }
  HttpResponse response;
  response.body = "{\"incidents\":[";
  for (const Incident& incident : found) {
    if (&incident != &found.front()) response.body += ",";
    response.body += incident_json(incident);
  }
  response.body += "]}\n";
  return response;
}

std::vector<TraceMark> trace_marks(const Incidents& incidents,
                                   std::chrono::system_clock::time_point since) {
  std::vector<TraceMark> marks;
  for (const Incident& incident : incidents.since(since)) {
    const std::string kind(kIncidentKindNames[index_of(incident.kind)]);
    if (incident.begin >= since) {
      marks.push_back({incident.begin, incident.feed, kind, incident.text});
    }
    if (incident.end && *incident.end > incident.begin) {
      marks.push_back({*incident.end, incident.feed, kind + " ends", incident.text});
    }
  }
  return marks;
}

}  // namespace framelane
