#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "config/scalars.hpp"
#include "daemon/cli.hpp"
#include "daemon/commands.hpp"
#include "daemon/logging.hpp"
#include "daemon/tune_feeds.hpp"
#include "daemon/tune_write.hpp"

namespace framelane {

int tune_feeds_command(const std::string& config, const std::string& size, const std::string& rate,
                       const std::string& output) {
  Value stream_size, stream_rate;
  if (!kImageSize.parse(size, stream_size) || !kFrameRate.parse(rate, stream_rate)) {
    std::fprintf(stderr, "framelane: %s at %s is no size and rate\n", size.c_str(), rate.c_str());
    return kExitUsage;
  }
  // Which encoder of a list is taken and why is no news here.
  set_up_logging({.level = LogLevel::kError, .format = LogFormat::kText});
  LoadOptions options;
  options.require_environment = false;  // secrets are the daemon's
  const LoadResult loaded = load_config_file(config, options);
  if (const auto* problems = std::get_if<std::vector<Problem>>(&loaded)) {
    return print_problems(*problems);
  }
  std::ofstream file(output);
  file << tuned_feeds_json(std::get<Config>(loaded),
                           {stream_size.width, stream_size.height, stream_rate.ratio})
       << std::flush;
  if (file) return kExitDone;
  std::fprintf(stderr, "framelane: %s cannot be written\n", output.c_str());
  return kExitFailed;
}

int tune_write_command(const std::string& config) {
  try {
    const std::string settings{std::istreambuf_iterator<char>(std::cin), {}};
    std::ifstream file(config, std::ios::binary);
    if (!file) throw std::runtime_error(config + " cannot be read: " + std::strerror(errno));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto edited = with_settings(text, config, tuned_settings(settings));
    if (const auto* problems = std::get_if<std::vector<Problem>>(&edited)) {
      return print_problems(*problems);
    }
    if (std::get<std::string>(edited) == text) {
      std::printf("%s: is set so already\n", config.c_str());
      return kExitDone;
    }
    replace_file(config, std::get<std::string>(edited));
    std::printf("%s: written; framelane takes it up when it is started again\n", config.c_str());
    return kExitDone;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framelane: %s; nothing was written\n", error.what());
    return kExitFailed;
  }
}

}  // namespace framelane
