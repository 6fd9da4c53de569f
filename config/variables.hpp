#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace framelane {

/// What the ${…} of a scalar stand for.
struct VariableScope {
  const LoadOptions& options;
  std::optional<std::string> feed;    ///< nothing where ${feed} has no meaning
  std::optional<std::string> output;  ///< nothing where ${output} has no meaning
  /// Looks at the syntax alone: for defaults and profiles, which mean something only in a feed.
  bool syntax_only = false;
};

struct Expansion {
  std::string text;
  /// False: values are missing from the text (syntax_only, or unset and accepted as such), so it
  /// cannot be judged.
  bool complete = true;
  /// Why there is no text; empty when there is. Never contains a value.
  std::string problem;
};

/// Expands ${NAME}, ${NAME:-default}, ${file:PATH}, ${feed}, ${output} and $$, once: what a
/// variable holds is not looked at again. Values in the user part of a URL are percent-encoded.
/// Reads the files it names (regular ones only, so that it cannot block); their contents go to
/// register_secret.
Expansion expand(std::string_view text, const VariableScope& scope);

}  // namespace framelane
