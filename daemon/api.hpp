#pragma once

#include <optional>

#include "config/admin_token.hpp"
#include "daemon/admin_server.hpp"

namespace framelane {

class ConfigReload;
class Incidents;
class Supervisor;
class TraceDumps;
class DiskReaders;
class EventHub;

/// What requests are about.
struct Program {
  Supervisor& supervisor;
  ConfigReload& config;
  const TraceDumps& traces;
  const Incidents& incidents;
  EventHub& events;
  DiskReaders& readers;
};

/// Answers the admin listener's requests: / and /web/NAME (web_pages.hpp), /metrics, /healthz,
/// /readyz, and what is below /api/v1/. Any thread; blocks if takes_long() says so.
HttpResponse answer(const HttpRequest& request, Program& program);
/// What a token has to allow for this request; nothing: no token is needed, as for the probes.
std::optional<AdminRole> needed_role(const HttpRequest& request);
/// True for a request that reads files, or whose answer is long.
bool takes_long(const HttpRequest& request);

}  // namespace framelane
