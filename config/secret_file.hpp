#pragma once

#include <optional>
#include <string>

#include "config/load_options.hpp"

namespace framelane {

/// The contents of a file with a secret: a password, a token, a key.
struct SecretFile {
  std::string text;
  std::string problem{};  ///< why it could not be read, with its name; empty: it was
  /// Every user of this machine may read or write it. Never true in $CREDENTIALS_DIRECTORY and
  /// /run/secrets, where systemd and container engines see to that.
  bool readable_by_all = false;
  bool writable_by_all = false;
  bool in_neither_folder = false;  ///< a relative name is in neither place
  bool wrong_kind = false;         ///< no regular file, or too large
};

/// `name` is a path. A relative one is looked up in $CREDENTIALS_DIRECTORY (systemd), then in
/// /run/secrets (containers). Reads regular files of at most 64 KiB only, so that it cannot block.
SecretFile read_secret_file(const std::string& name, const LoadOptions& options);

/// The value of an environment variable, as these options look it up.
std::optional<std::string> look_up_variable(const std::string& name, const LoadOptions& options);

}  // namespace framelane
