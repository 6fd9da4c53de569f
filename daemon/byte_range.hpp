#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "daemon/admin_server.hpp"

namespace framelane {

/// The part of a file of `size` bytes that the request's Range header asks for, from its first byte
/// to behind its last one (RFC 9110, 14.1.2): "bytes=FIRST-LAST", "bytes=FIRST-", "bytes=-COUNT".
/// Nothing if it has none, or another kind, or several parts: all of the file is sent then. An
/// empty part (first == second) if the file has no byte of what it asks for.
std::optional<std::pair<std::uint64_t, std::uint64_t>> byte_range(const HttpRequest& request,
                                                                  std::uint64_t size);

}  // namespace framelane
