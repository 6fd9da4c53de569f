#pragma once

#include <vector>

#include "config/keys.hpp"
#include "config/process_config.hpp"

namespace framelane {

/// The key `hooks`: a list of hooks. Their secrets, and those in their URLs, go to register_secret.
Key<std::vector<HookConfig>> hooks_key();

}  // namespace framelane
