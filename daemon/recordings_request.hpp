#pragma once

#include <string>

#include "daemon/admin_server.hpp"
#include "daemon/disk_readers.hpp"
#include "daemon/supervisor.hpp"

namespace framelane {

/// Answers GET /api/v1/feeds/NAME/recordings with `path` behind it:
/// - "": a list of the feed's recordings, and of the gaps between them;
/// - "/OUTPUT/FILE": a file of the output's pattern, whole or in part (Range);
/// - "/OUTPUT.mp4": a span of time as one MP4.
/// Nothing else is read, and nothing to which a link leads. Any thread. Blocks as
/// DiskReaders::answer() does. Throws RequestError.
HttpResponse answer_recordings(const HttpRequest& request, const Supervisor& supervisor,
                               DiskReaders& readers, const std::string& feed,
                               const std::string& path);

}  // namespace framelane
