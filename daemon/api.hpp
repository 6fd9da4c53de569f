#pragma once

#include "daemon/admin_server.hpp"

namespace framelane {

class Supervisor;

/// Answers the admin listener's requests: /metrics, /healthz, /readyz, /api/v1/feeds,
/// /api/v1/feeds/NAME, POST /api/v1/feeds/NAME/restart, /api/v1/devices. Any thread.
HttpResponse answer(const HttpRequest& request, Supervisor& supervisor);

}  // namespace framelane
