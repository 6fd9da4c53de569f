#pragma once

#include <string>

namespace framelane {

/// JSON Schema (2020-12) of the configuration, pretty-printed. Made from the key tables that the
/// reader uses, so that the two cannot differ.
std::string config_schema();

}  // namespace framelane
