#pragma once

#include "config/keys.hpp"
#include "config/process_config.hpp"

namespace framelane {

/// The keys of `admin`. Reads the files that they name: tokens, and TLS's certificate and key.
const Section<AdminConfig>& admin_keys();

/// What is wrong with them together; `node` is `admin`.
void check_admin(const Node& node, const AdminConfig& admin, Reader& reader);

}  // namespace framelane
