#pragma once

#include <optional>

#include "config/admin_token.hpp"
#include "daemon/admin_server.hpp"

namespace framelane {

class ConfigReload;
class Supervisor;

/// Answers the admin listener's requests: / and /web/NAME (web_pages.hpp), /metrics, /healthz,
/// /readyz, /api/v1/feeds, /api/v1/feeds/NAME, POST /api/v1/feeds/NAME/restart, POST
/// /api/v1/reload, /api/v1/devices. Any thread; blocks if takes_long() says so.
HttpResponse answer(const HttpRequest& request, Supervisor& supervisor, ConfigReload& config);
/// What a token has to allow for this request; nothing: no token is needed, as for the probes.
std::optional<AdminRole> needed_role(const HttpRequest& request);
/// True for a request that reads files.
bool takes_long(const HttpRequest& request);

}  // namespace framelane
