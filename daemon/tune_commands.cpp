#include <cstdio>
#include <fstream>
#include <string>

#include "config/scalars.hpp"
#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "daemon/logging.hpp"
#include "daemon/tune_feeds.hpp"

namespace framelane {

int tune_feeds_command(const std::string& config, const std::string& size, const std::string& rate,
                       const std::string& output) {
  StreamShape streams;
  Value stream_size, stream_rate;
  streams.size_is_stated = !size.empty();
  if ((streams.size_is_stated && !kImageSize.parse(size, stream_size)) ||
      !kFrameRate.parse(rate, stream_rate)) {
    std::fprintf(stderr, "framelane: %s at %s is no size and rate\n", size.c_str(), rate.c_str());
    return kExitUsage;
  }
  streams.rate = stream_rate.ratio;
  if (streams.size_is_stated) {
    streams.width = stream_size.width;
    streams.height = stream_size.height;
  }
  // Logs errors only. Encoders are opened to learn what they take, and each choice among them would
  // be logged.
  set_up_logging({.level = LogLevel::kError, .format = LogFormat::kPlain});
  LoadOptions options;
  options.require_environment = false;  // secrets are the daemon's
  const LoadResult loaded = load_config_file(config, options);
  if (const auto* problems = std::get_if<std::vector<Problem>>(&loaded)) {
    return print_problems(*problems);
  }
  const auto& read = std::get<Config>(loaded);
  std::ofstream file(output);
  file << tuned_feeds_json(read, *read.tree, streams) << std::flush;
  if (file) return kExitDone;
  std::fprintf(stderr, "framelane: %s cannot be written\n", output.c_str());
  return kExitFailed;
}

}  // namespace framelane
