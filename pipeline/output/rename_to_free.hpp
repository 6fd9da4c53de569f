#pragma once

#include <string>

namespace framelane {

/// Renames without replacing. False if `to` exists. Blocks as long as the file system does. Throws
/// IoError, DiskFull.
bool rename_to_free(const std::string& from, const std::string& to);

}  // namespace framelane
