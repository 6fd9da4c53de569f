#pragma once

#include <chrono>
#include <vector>

#include "daemon/admin_server.hpp"
#include "daemon/incidents.hpp"
#include "daemon/supervisor.hpp"
#include "daemon/trace_json.hpp"

namespace framelane {

/// Answers GET /api/v1/incidents?since=TIME&feed=NAME. Any thread. Throws RequestError.
HttpResponse answer_incidents(const HttpRequest& request, const Incidents& incidents,
                              const Supervisor& supervisor);

/// The incidents that began or ended at `since` or later, as marks in a trace.
std::vector<TraceMark> trace_marks(const Incidents& incidents,
                                   std::chrono::system_clock::time_point since);

}  // namespace framelane
