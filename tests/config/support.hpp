#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace framelane::test {

using Environment = std::map<std::string, std::string>;

inline LoadOptions with_environment(Environment variables) {
  LoadOptions options;
  options.environment =
      [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  return options;
}

/// The problems of a configuration as printed, for a file named "f.yaml"; empty if it is right.
inline std::vector<std::string> problems_of(std::string_view text, const LoadOptions& options) {
  std::vector<std::string> lines;
  const LoadResult result = load_config_text(text, "f.yaml", options);
  if (const auto* problems = std::get_if<std::vector<Problem>>(&result)) {
    for (const Problem& problem : *problems) lines.push_back(to_string(problem));
  }
  return lines;
}
inline std::vector<std::string> problems_of(std::string_view text) {
  return problems_of(text, with_environment({}));
}

/// Loads a configuration. If it is wrong, the test fails and the result is empty.
inline Config load(std::string_view text, const LoadOptions& options) {
  LoadResult result = load_config_text(text, "f.yaml", options);
  if (auto* config = std::get_if<Config>(&result)) return std::move(*config);
  for (const Problem& problem : std::get<std::vector<Problem>>(result)) {
    ADD_FAILURE() << to_string(problem);
  }
  return {};
}
inline Config load(std::string_view text) { return load(text, with_environment({})); }

/// The only feed of a configuration.
inline FeedOptions load_feed(std::string_view text, const LoadOptions& options) {
  Config config = load(text, options);
  if (config.feeds.size() == 1) return std::move(config.feeds.front());
  ADD_FAILURE() << config.feeds.size() << " feeds instead of one";
  return {};
}
inline FeedOptions load_feed(std::string_view text) {
  return load_feed(text, with_environment({}));
}

}  // namespace framelane::test
