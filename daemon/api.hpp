#pragma once

#include <optional>

#include "config/admin_token.hpp"
#include "daemon/admin_server.hpp"

namespace framelane {

class ConfigReload;
class Incidents;
class Supervisor;
class TraceDumps;
class EventHub;

/// What requests are about.
struct Program {
  Supervisor& supervisor;
  ConfigReload& config;
  const TraceDumps& traces;
  const Incidents& incidents;
  EventHub& events;
};

/// Answers the admin listener's requests: /metrics, /healthz, /readyz, /api/v1/feeds,
/// /api/v1/feeds/NAME, POST /api/v1/feeds/NAME/restart, POST /api/v1/reload, /api/v1/devices,
/// /api/v1/trace, /api/v1/incidents, /api/v1/events. Any thread; blocks if takes_long() says so.
HttpResponse answer(const HttpRequest& request, Program& program);
/// What a token has to allow for this request; nothing: no token is needed, as for the probes.
std::optional<AdminRole> needed_role(const HttpRequest& request);
/// True for a request that reads files, or whose answer is long.
bool takes_long(const HttpRequest& request);

}  // namespace framelane
