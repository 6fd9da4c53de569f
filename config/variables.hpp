#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/load_options.hpp"

namespace framelane {

/// Where a scalar stands, which decides what its ${…} mean.
struct VariableScope {
  const LoadOptions& options;
  std::optional<std::string> feed;    ///< nothing if ${feed} is not allowed there
  std::optional<std::string> output;  ///< nothing if ${output} is not allowed there
  /// Only the syntax is checked. For defaults and profiles: their variables get values only when
  /// they are merged into a feed.
  bool syntax_only = false;
};

struct Expansion {
  std::string text;
  /// False if values are missing from the text, because of syntax_only or because an unset variable
  /// was accepted. Such a text must not be checked.
  bool complete = true;
  /// Why there is no text; empty if there is one. They never contain the value of a variable.
  std::vector<std::string> problems{};
};

/// Expands ${NAME}, ${NAME:-default}, ${file:PATH}, ${feed}, ${output} and $$ once: a "${" in the
/// value of a variable is plain text. Values in the user part of a URL are percent-encoded.
/// Of the files it names it reads regular ones only, so that it cannot block. What they contain
/// goes to register_secret, and so do the values of variables whose names say that they hold a
/// secret.
Expansion expand(std::string_view text, const VariableScope& scope);

/// Expands the ${…} of one scalar as a configuration does; `transcode` uses it for its URLs. If
/// that fails, returns nothing and says why in `problem`.
std::optional<std::string> expand_variables(std::string_view text, const LoadOptions& options,
                                            std::string& problem);

}  // namespace framelane
