#pragma once

#include <string>

#include "pipeline/base/failure.hpp"

namespace framelane {

/// What helps if the system does not let this process open `path` for reading, as the end of a
/// message; empty for other errno values.
std::string denial_remedy(int error, const std::string& path);

/// What a source throws when a system call fails with this errno value.
IoError io_error(int error, const std::string& what);

}  // namespace framelane
