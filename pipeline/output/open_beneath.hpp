#pragma once

#include <filesystem>
#include <string>

#include "pipeline/base/file_descriptor.hpp"

namespace framelane {

/// Opens a regular file for reading. `name` is its path from `folder` on, in which no ".", ".." or
/// link is followed; the folder itself may be a link. -1 with errno if there is no such file:
/// ENOENT, ELOOP, ENOTDIR for what is none. Blocks as long as the file system does.
FileDescriptor open_beneath(const std::filesystem::path& folder, const std::string& name);

}  // namespace framelane
