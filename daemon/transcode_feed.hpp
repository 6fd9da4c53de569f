#pragma once

#include <string>
#include <variant>

#include "daemon/commands.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

/// Why `transcode` cannot run.
struct TranscodeProblem {
  std::string text;  ///< not redacted yet
  int exit_code = 2;
};

/// The feed that `transcode` runs, or the first problem of its arguments. Opens nothing but the
/// ${file:…} that the arguments name.
std::variant<FeedOptions, TranscodeProblem> transcode_feed(const TranscodeArguments& arguments);

}  // namespace framelane
