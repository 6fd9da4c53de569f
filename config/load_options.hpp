#pragma once

#include <functional>
#include <optional>
#include <string>

namespace framelane {

/// How the ${…} of a configuration are looked up.
struct LoadOptions {
  /// If false (`check --no-env`), unset ${NAME} and unreadable ${file:…} are no problems and stand
  /// for an empty string.
  bool require_environment = true;
  /// If false, the files of overlays are not looked at.
  bool require_files = true;
  /// Returns the value of an environment variable; getenv if empty.
  std::function<std::optional<std::string>(const std::string&)> environment{};
};

}  // namespace framelane
