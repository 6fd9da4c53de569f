#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace framelane {

/// What `framelane tune --write` puts into a configuration.
struct TunedSettings {
  struct Feed {
    std::string name;
    int lanes = 0;
    int ring = 0;
    std::optional<int> slices;  ///< nothing: auto
  };
  std::string device;
  /// What goes under `defaults`; its name means nothing.
  Feed defaults;
  std::vector<Feed> feeds;
};
/// Of the text {"device","defaults":{"lanes","ring","slices"},"feeds":[{"name",…}]}, slices 0 being
/// auto. Throws what says that it is none.
TunedSettings tuned_settings(const std::string& json);

/// The text of a configuration with these settings in effect: `device` at the top, the others under
/// `defaults`, and under those feeds to which another value would come from there or from their
/// profile. Nothing else changes. Or what is wrong with the configuration. Throws
/// std::runtime_error with a line that says why the text cannot be edited so.
std::variant<std::string, std::vector<Problem>> with_settings(const std::string& text,
                                                              const std::string& file,
                                                              const TunedSettings& settings);

/// Gives the file that `path` leads to another content at once, or leaves it as it is: a new file
/// beside it, with its mode and owner, takes its name when it is on the disk. Throws
/// std::runtime_error with a line that says what could not be done.
void replace_file(const std::string& path, const std::string& text);

}  // namespace framelane
