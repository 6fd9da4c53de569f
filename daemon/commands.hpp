#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "pipeline/feed/feed_options.hpp"
#include "pipeline/stage/device.hpp"

namespace framelane {

// One function per command; each returns the process's exit code and writes problems to stderr,
// one line each. Main thread, before any other thread exists.

struct RunArguments {
  std::string config = kDefaultConfigFile;
  bool once = false;
};
int run_command(const RunArguments& arguments);

struct TranscodeArguments {
  std::string input;
  std::string output;
  bool overwrite = false;
  std::vector<std::string> codecs;   ///< in order of preference; {"copy"}: no encode
  std::vector<std::string> options;  ///< K=V, for each codec
  std::string bitrate;
  std::string gop;
  bool copy_audio = true;
  std::string format;
  std::string matrix, range, siting;
  std::string device = "auto";
  int lanes = 3;
  int ring = 8;
  std::optional<int> slices;
  std::string input_format, input_pixel_format, input_size, input_rate;
  std::string duration;
  bool json = false;
  bool quiet = false;
};
int transcode_command(const TranscodeArguments& arguments);

struct TranscodeProblem {
  std::string text;  ///< may hold secrets
  int exit_code = 2;
};
/// The feed that `transcode` runs, or why there is none.
std::variant<FeedOptions, TranscodeProblem> transcode_feed(const TranscodeArguments& arguments);

/// Prints every problem of a configuration; returns the exit code that stands for it.
int print_problems(const std::vector<Problem>& problems);

int check_command(const std::string& config, bool require_environment);
int devices_command(bool json);

/// Becomes framelane-bench, which lies beside this program, with what follows `bench` of the
/// command line, or `tune` and what follows. Returns only when there is none.
int bench_command(char** arguments);

/// What framelane-bench asks for `framelane tune`, since it knows no configurations: writes
/// tuned_feeds_json to the file `output`, and nothing where the configuration is wrong.
int tune_feeds_command(const std::string& config, const std::string& size, const std::string& rate,
                       const std::string& output);

/// `url` wins over the listener that the configuration names, which may be wrong otherwise.
int healthcheck_command(const std::string& config, const std::string& url);

/// The device a configuration asks for, logged with why it was chosen; nothing, with the reason
/// logged, when it cannot be had.
std::shared_ptr<Device> choose_device(const DeviceConfig& config);

}  // namespace framelane
