#pragma once

#include <string>

#include "daemon/admin_server.hpp"
#include "daemon/supervisor.hpp"

namespace framelane {

/// Answers GET /api/v1/feeds/NAME/snapshot.jpg?width=N: the next frame that an encode gets or, if
/// none is in host memory, the newest keyframe. Blocks for up to 1.5 s (kSnapshotPatience), and
/// while others make theirs. Any thread. Throws RequestError.
HttpResponse answer_snapshot(const HttpRequest& request, const Supervisor& supervisor,
                             const std::string& feed);

}  // namespace framelane
