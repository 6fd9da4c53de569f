#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/problem.hpp"
#include "config/process_config.hpp"
#include "daemon/device_set.hpp"

namespace framelane {

// One function for each command. It returns the exit code of the process and writes problems to
// stderr, one line each. Main thread, before any other thread exists.

struct RunArguments {
  std::string config = kDefaultConfigFile;
  bool once = false;
};
int run_command(const RunArguments& arguments);

struct TranscodeArguments {
  std::string input;
  std::string output;
  bool overwrite = false;
  std::vector<std::string> codecs;   ///< in order of preference; {"copy"}: nothing is encoded
  std::vector<std::string> options;  ///< K=V, for each codec
  std::string bitrate;
  std::string gop;
  std::vector<std::string> audio{"copy"};  ///< {"copy"}, {"none"}, or encoders as in `codecs`
  std::string format;
  std::string pixel_format, matrix, range, siting, crop, size, overlay_text;
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

/// Returns `status`, unless there is something that could hold up or disturb the destruction of the
/// process's objects: an abandoned thread, or a GPU that is lost. Then it ends the process with
/// `status` at once. To be called before the devices are destroyed.
int exit_past_hangs(int status, const DeviceSet* devices = nullptr);

/// Prints every problem of a configuration; returns the exit code for a wrong configuration.
int print_problems(const std::vector<Problem>& problems);

int check_command(const std::string& config, bool require_environment);
int devices_command(bool json);

/// Replaces this process by framelane-bench, which is installed beside this program, with these
/// arguments. Returns only if it cannot be started.
int bench_command(char** arguments);

/// What framelane-bench asks for `framelane tune`, since it knows no configurations: writes
/// tuned_feeds_json to the file `output`, and nothing where the configuration is wrong.
int tune_feeds_command(const std::string& config, const std::string& size, const std::string& rate,
                       const std::string& output);

/// The listener `url` or, if that is empty, the one of the configuration, whose mistakes are added
/// to `problems`: if its address cannot be read, it is the default one. Throws std::runtime_error
/// if the configuration has none.
AdminAddress find_listener(const std::string& config, const std::string& url,
                           std::vector<Problem>& problems);

/// Asks /readyz of the listener `url` or, if that is empty, of the listener of the configuration.
/// Other mistakes in the configuration do not matter.
int healthcheck_command(const std::string& config, const std::string& url);

struct TraceArguments {
  std::string config = kDefaultConfigFile;
  std::string url;         ///< of the listener; empty: that of the configuration
  std::string token_file;  ///< empty: no token
  int seconds = 10;
  std::string feed;  ///< empty: all
  std::string output;
};
/// Fetches a trace from a running daemon, and writes it to a file.
int trace_command(const TraceArguments& arguments);

}  // namespace framelane
