#pragma once

#include <string>

#include "daemon/admin_server.hpp"
#include "daemon/disk_readers.hpp"
#include "daemon/query.hpp"
#include "pipeline/base/file_descriptor.hpp"

namespace framelane {

/// Why a file could not be opened, by errno: `missing` if there is none of that name.
RequestError open_error(int error, const std::string& name, RequestError missing);

/// Answers GET and HEAD with a file, or with the part of it that Range and If-Range ask for
/// (RFC 9110, 13.1.5 and 14.2): "bytes=FIRST-LAST", "bytes=FIRST-" or "bytes=-COUNT"; all of the
/// file where they ask for something else. `name` tells its media type, and is what an error calls
/// it. On a thread of DiskReaders. Throws RequestError if the file cannot be read.
void answer_with_file(const HttpRequest& request, const FileDescriptor& file,
                      const std::string& name, DiskAnswer& answer);

}  // namespace framelane
