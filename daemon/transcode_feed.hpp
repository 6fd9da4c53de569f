#pragma once

#include <string>
#include <variant>
#include <vector>

#include "daemon/commands.hpp"
#include "pipeline/feed/feed_options.hpp"

namespace framelane {

/// Why `transcode` cannot run.
struct TranscodeProblem {
  std::vector<std::string> lines;  ///< not redacted yet
  int exit_code = 2;
};

/// The feed that `transcode` runs, or what is wrong with the first wrong argument (with all the
/// encoder's options). Opens nothing but the
/// ${file:…} that the arguments name.
std::variant<FeedOptions, TranscodeProblem> transcode_feed(const TranscodeArguments& arguments);

}  // namespace framelane
