#pragma once

#include <map>
#include <string>

#include "daemon/admin_server.hpp"
#include "daemon/incidents.hpp"
#include "daemon/supervisor.hpp"

namespace framelane {

/// The largest trace, as it is sent.
inline constexpr std::size_t kMostTrace = 64u << 20;

/// The GPU that each feed runs on. Feeds on the CPU are left out.
std::map<std::string, std::string> gpus_of(const Supervisor& supervisor);

/// Answers GET /api/v1/trace?seconds=N&feed=NAME. The answer is packed with gzip if the client
/// takes that. Blocks while it is written, which takes seconds if the recorder's memory is large.
/// Any thread. Throws RequestError.
HttpResponse answer_trace(const HttpRequest& request, const Supervisor& supervisor,
                          const Incidents& incidents);

}  // namespace framelane
